package engine

import (
	"fmt"
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
