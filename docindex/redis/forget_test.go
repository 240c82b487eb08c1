package redis

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
)

func withID(id string) docindex.Put {
	return docindex.Put{URL: []byte("http://a.test/"), DocID: []byte(id)}
}

// wantEnded takes the one document that there is, and wants its outcome to reach it.
func wantEnded(t *testing.T, s *Store) {
	t.Helper()
	b := take(t, s)
	end(t, s, b)
	if n := indextest.Count(t, s, nil); b.Len() != 1 || n.Completed != 1 || n.InTransit != 0 {
		t.Errorf("after the outcomes of %d: %+v; want 1 completed", b.Len(), n)
	}
}

// TestPutWhileFreed puts a URL again, with the same DOC_ID, before a deletion that another daemon
// began is through.
func TestPutWhileFreed(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	putOf(t, a, withID("mine"))
	if _, err := a.one(t.Context(), shardOf("a.test"), dropScript, "@"+nameOf("", "a.test")); err != nil {
		t.Fatal(err)
	}
	putOf(t, b, withID("mine"))
	a.sweep(t.Context())
	wantEnded(t, b)
}

// TestPutWhileForgotten puts a URL again at some point of its forgetting.
func TestPutWhileForgotten(t *testing.T) {
	for what, script := range map[string]*script{"forgotten": purgeScript, "read": whereScript,
		"looked for": usesScript, "unnamed": releaseScript} {
		t.Run(what, func(t *testing.T) {
			d := newDaemons(t)
			a, b := d.start(), d.start()
			putOf(t, a, withID("mine"))
			d.pass(time.Minute)
			after(t, a, script, func([]rueidis.RedisResult) { putOf(t, b, withID("mine")) })
			n, err := a.Purge(t.Context(), docindex.Scope{}, time.UnixMicro(d.now.Load()))
			if n != 1 || err != nil {
				t.Errorf("Purge = %d, %v; want 1", n, err)
			}
			wantEnded(t, b)
		})
	}
}

// TestForgottenWhilePut has a URL be forgotten, by another daemon, between two steps of its being
// put again.
func TestForgottenWhilePut(t *testing.T) {
	for what, script := range map[string]*script{"looked for": whereScript, "read": getScript, "named": nameScript} {
		t.Run(what, func(t *testing.T) {
			d := newDaemons(t)
			a, b := d.start(), d.start()
			putOf(t, a, withID("mine"))
			d.pass(time.Minute)
			after(t, b, script, func([]rueidis.RedisResult) {
				n, err := a.Purge(t.Context(), docindex.Scope{}, time.UnixMicro(d.now.Load()))
				if n != 1 || err != nil {
					t.Errorf("Purge = %d, %v; want 1", n, err)
				}
			})
			if res := putOf(t, b, withID("mine")); res.New != 1 {
				t.Errorf("put is %+v; want a new one", res)
			}
			wantEnded(t, b)
		})
	}
}
