package redis

import (
	"slices"
	"testing"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// TestBoundOfMixedQueue has another call serve a queue of several hosts that a call has just seen
// to have room.
func TestBoundOfMixedQueue(t *testing.T) {
	d := newDaemons(t)
	a, b := d.start(), d.start()
	if err := a.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		t.Fatal(err)
	}
	all := []string{"http://a.test/1", "http://b.test/2", "http://c.test/3", "http://d.test/4", "http://e.test/5"}
	putURLs(t, a, "mixed", all...)
	serve := func(s *Store) (got []string) {
		r := docindex.Request{AnyCrawl: true, PerQueue: 3, Lease: testLease}
		err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				got = append(got, string(h.At(i).URL))
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		slices.Sort(got)
		return got
	}
	var first []string
	after(t, b, readyScript, func([]rueidis.RedisResult) { first = serve(a) })
	want(t, "the second call", serve(b))
	want(t, "the one that came in between", first, all[:3]...)
}
