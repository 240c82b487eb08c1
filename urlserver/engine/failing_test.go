package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/internal/robots"
)

// TestRedirectToHostThatIsGivenUp leads the robots.txt of one host to another
// one whose many documents are being ended just then, since it has no address:
// the trip must not wait for an answer that nobody fetches.
func TestRedirectToHostThatIsGivenUp(t *testing.T) {
	cfg := configs.Default()
	e := New(cfg, Options{Cached: func(host []byte) (netip.Addr, error, bool) {
		addr, err := netip.ParseAddr(string(host))
		return addr, nil, err == nil
	}})
	e.Advance(time.Minute, start)
	e.Connected("spider")
	p := &Prepared{}
	p.Batch.Add([]byte("first"), []byte("http://10.0.0.1/"), 0)
	const docs = 3 * stepBudget
	for i := range docs {
		p.Batch.Add(fmt.Append(nil, i), fmt.Appendf(nil, "http://dead.test/%d", i), 0)
	}
	p.Prepare()
	e.Answered(p)
	for e.Step(nil) == 0 {
	}
	if len(e.Out.Fetches) != 1 || len(e.Out.Lookups) != 1 {
		t.Fatalf("fetches %v, look-ups %v; want one of each", e.Out.Fetches, e.Out.Lookups)
	}
	e.Resolved("dead.test", netip.Addr{}, errors.New("no such host"))
	e.Step(nil)
	if got := e.Out.Outcomes.Len(); got == 0 || got >= docs {
		t.Fatalf("%d documents have ended; want some", got)
	}
	e.Out.Lookups = nil
	e.Fetched(e.Out.Fetches[0].ID, robots.Response{Status: 301, Location: "http://dead.test/robots.txt"})
	for e.Step(nil) == 0 {
	}
	if len(e.Out.Lookups) != 1 {
		t.Fatalf("look-ups of the redirect's host: %v; want one, since nothing is known of it", e.Out.Lookups)
	}
	e.Resolved("dead.test", netip.Addr{}, errors.New("no such host"))
	e.Advance(time.Hour, start)
	for e.Step(nil) == 0 {
	}
	if s := e.Stats(); s.Slots.Held != 1 || len(e.Out.Fetches) != 2 {
		t.Fatalf("%d documents are held, %d fetches; want robots.txt tried again for the one", s.Slots.Held,
			len(e.Out.Fetches))
	}
	for i := 1; i < e.cfg.Spider.MaxAttempts; i++ {
		e.Fetched(e.Out.Fetches[i].ID, robots.Response{})
		e.Advance(e.now+time.Hour, start)
		for e.Step(nil) == 0 {
		}
	}
	if s := e.Stats(); s.RobotsFetches != 0 || s.Slots.Held != 0 {
		t.Errorf("%d trips, %d documents held; want all ended", s.RobotsFetches, s.Slots.Held)
	}
}
