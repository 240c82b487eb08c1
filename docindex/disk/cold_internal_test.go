package disk

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// TestUnreadableQueue damages the row that finds a queue by its key. The queue is not taken for a new
// one then: nothing is written.
func TestUnreadableQueue(t *testing.T) {
	damage := func(t *testing.T) *Store {
		t.Helper()
		s, err := Open(Config{Path: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		s.queues.before = 1 // so it may have such a row
		n := s.docs.namer.keyName(nil, []byte("a.test"))
		if err := s.db.Set(n.docKey(nil), []byte("bad"), pebble.Sync); err != nil {
			t.Fatal(err)
		}
		s.db.memtables.add(&n)
		s.base.Sched.RestoreCrawl(0, "", queuesched.Counts{Queues: 1})
		return s
	}
	unchanged := func(t *testing.T, s *Store, kind byte) {
		t.Helper()
		if err := s.db.each(kind, func(key, _ []byte) error {
			t.Errorf("the row %q was written", key)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("put", func(t *testing.T) {
		s := damage(t)
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://a.test/")}); err != nil {
			t.Fatal(err)
		}
		if res, err := s.Put(t.Context(), &p); err == nil {
			t.Errorf("Put: %+v; want an error", res)
		}
		unchanged(t, s, queueRow)
	})
	t.Run("set", func(t *testing.T) {
		s := damage(t)
		if err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay, Value: 5,
			Scope: docindex.Scope{Key: []byte("a.test")}}); err == nil {
			t.Error("Set returns no error")
		}
		unchanged(t, s, presetRow)
	})
}
