package engine

import (
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/protocol"
)

// TestStatusesThatCameDuringAStallCount has the daemon stand still past a document's patience, with
// a status waiting in the socket for one of two.
func TestStatusesThatCameDuringAStallCount(t *testing.T) {
	t.Run("before an event", func(t *testing.T) { stalled(t, func(*Engine) {}) })
	t.Run("between two", func(t *testing.T) { stalled(t, func(e *Engine) { e.Advance(12*second, time.Time{}) }) })
}

// stalled stands still after before.
func stalled(t *testing.T, before func(e *Engine)) {
	e := paced(2, func(c *configs.Config) { c.TimeoutSpiderStatus, c.ReqHostConcurrent = 30*second, 2 })
	id := e.Connected("spider")
	e.intake.asking = true
	stepAt(e, 10*second)
	if sent := stepAt(e, 11*second); sent != 2 {
		t.Fatalf("sent %d documents; want 2", sent)
	}
	before(e)
	stepAt(e, 60*second)
	if n := e.stats.Expired; n != 0 {
		t.Fatalf("%d documents have expired before anybody was heard", n)
	}
	done, err := protocol.ParseStatus([]byte("0.0.0 DONE 200"))
	if err != nil {
		t.Fatal(err)
	}
	e.Lines(id, []Line{{Status: done}})
	wait := e.Step(nil)
	if e.stats.Expired != 0 || e.spiders.byID[id].done != 1 || wait > hearTime || wait < time.Millisecond {
		t.Errorf("%d expired, %d done, next step in %v; want 0, 1 and at most %v", e.stats.Expired,
			e.spiders.byID[id].done, wait, hearTime)
	}
	stepAt(e, 60*second+hearTime)
	if n := e.stats.Expired; n != 1 {
		t.Errorf("%d documents have expired once all was heard; want 1", n)
	}
}
