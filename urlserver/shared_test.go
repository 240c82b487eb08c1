package urlserver

import (
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
)

// until waits until the store's counts fulfil is.
func (r *rig) until(what string, is func(docindex.StoreStats) bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !is(r.store.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: the store has %+v", what, r.store.Stats())
		}
	}
}

// TestSharedStore: with the URL Frontier service on, or an index in Redis, which other daemons have, too, and
// without a spider, all documents are left to others, also those that a spider leaves behind.
func TestSharedStore(t *testing.T) {
	for name, share := range map[string]func(c *configs.Config){
		"frontier": func(c *configs.Config) { c.Frontier.Listen = "127.0.0.1:0" }, // nobody listens here
		"Redis":    func(c *configs.Config) { c.DocIndex.Kind = configs.KindRedis },
	} {
		t.Run(name, func(t *testing.T) { sharedStore(t, share) })
	}
}

func sharedStore(t *testing.T, share func(c *configs.Config)) {
	r := newRig(t, func(c *configs.Config) {
		share(c)
		c.ReqHostPerSec = 0.01
	})
	r.put("http://127.0.0.1/a", "http://127.0.0.1/b", "http://127.0.0.2/c")
	for range 3 { // steps of the run loop
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
