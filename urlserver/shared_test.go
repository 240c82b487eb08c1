package urlserver

import (
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// until waits for counts of the store, which others move.
func (r *rig) until(what string, is func(docindex.StoreStats) bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !is(r.store.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: the store has %+v", what, r.store.Stats())
		}
	}
}

// TestSharedStore has the URL Frontier open: without a spider everything is left to its clients,
// and what a spider leaves behind is theirs, too.
func TestSharedStore(t *testing.T) {
	r := newRig(t, func(c *configs.Config) {
		c.Frontier.Listen = "127.0.0.1:0" // nobody listens here; the daemon is told only
		c.ReqHostPerSec = 0.01
	})
	r.put("http://127.0.0.1/a", "http://127.0.0.1/b", "http://127.0.0.2/c")
	for range 3 { // steps of the owner
		if _, err := r.d.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.store.Stats().InTransit; n != 0 {
		t.Errorf("%d documents are taken while no spider is connected", n)
	}
	s := r.spider()
	r.until("with a spider", func(n docindex.StoreStats) bool { return n.InTransit == 3 })
	s.conn.Close()
	r.until("after it has gone", func(n docindex.StoreStats) bool { return n.Scheduled == 3 })
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
