package engine

import (
	"fmt"
	"strings"
	"testing"

	"urlserver/configs"
	"urlserver/internal/robots"
)

// TestRulesReadForAnotherAgentAreNotUsed changes the agent while a robots.txt is on its way.
func TestRulesReadForAnotherAgentAreNotUsed(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.Robots.Enabled = true })
	e.Connected("spider")
	stepAt(e, 10*second)
	if len(e.Out.Fetches) != 1 {
		t.Fatalf("%d requests for robots.txt; want 1", len(e.Out.Fetches))
	}
	cfg := e.cfg
	cfg.Robots.UserAgent = "another"
	e.Reconfigure(cfg)
	e.Fetched(e.Out.Fetches[0].ID, robots.Response{Status: 404})
	stepAt(e, 11*second)
	if sent := stepAt(e, 12*second); sent != 0 || len(e.Out.Fetches) != 2 {
		t.Errorf("sent %d documents after %d requests for robots.txt; want none before the second is "+
			"answered", sent, len(e.Out.Fetches))
	}
}

// TestLateRobotsRequestIsMadeAgain: what was not sent, since this process stood still until its
// lease had ended, says nothing of the host.
func TestLateRobotsRequestIsMadeAgain(t *testing.T) {
	e := paced(1, func(c *configs.Config) { c.Robots.Enabled = true })
	e.Connected("spider")
	stepAt(e, 10*second)
	if len(e.Out.Fetches) != 1 {
		t.Fatalf("%d requests for robots.txt; want 1", len(e.Out.Fetches))
	}
	e.Fetched(e.Out.Fetches[0].ID, robots.Response{Err: fmt.Errorf("fetch: %w", robots.ErrLate)})
	stepAt(e, 11*second-1)
	if len(e.Out.Fetches) != 1 {
		t.Error("it is made again before the gap has passed")
	}
	stepAt(e, 11*second)
	if len(e.Out.Fetches) != 2 {
		t.Fatalf("%d requests for robots.txt; want it made again", len(e.Out.Fetches))
	}
	e.Fetched(e.Out.Fetches[1].ID, robots.Response{Status: 404})
	if sent := stepAt(e, 12*second); sent != 1 {
		t.Errorf("sent %d documents after the answer; want 1", sent)
	}
}

// TestTryThatAsksNobody ends the look-up of a host while the second request for its robots.txt
// waits for its turn. That was no try: the host is asked again when it has an address.
func TestTryThatAsksNobody(t *testing.T) {
	p := newScript(t, "robots.enabled=true robots.error_ttl=\"60s\" spider.max_attempts=2")
	do := func(event string) {
		p.out = nil
		p.event(strings.Fields(event))
		p.step(t)
	}
	do("dns a.test 10.0.0.1")
	do("index 1=http://a.test/1")
	do("spider A")
	p.pass(t, second)
	do("robots http://a.test/robots.txt 503")
	p.e.robots.limits = [len(p.e.robots.limits)]fetchLimit{} // no request may start
	do("dns a.test forget")
	p.pass(t, 64*second) // a look-up that takes long holds the host up for two seconds
	if len(p.e.robots.open) != 1 {
		t.Fatalf("%d fetches wait; want 1", len(p.e.robots.open))
	}
	do("resolved a.test fail")
	const want = "1m5s outcome 1 http://a.test/1 dns status=0 attempts=0"
	if len(p.out) == 0 || p.out[0] != want {
		t.Fatalf("after the look-up: %q; want %q", p.out, want)
	}
	p.e.robots.limits = newFetchLimits()
	do("dns a.test 10.0.0.1")
	do("index 2=http://a.test/2")
	p.pass(t, 61*second)
	if got := strings.Join(p.out, "\n"); !strings.Contains(got, "fetch http://a.test/robots.txt") {
		t.Errorf("after the host has an address again: %s; want that its robots.txt is asked for", got)
	}
}
