package disk

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// TestLoadOverranRests has more queues that wait than one call of LoadOverran looks at, and none of a
// domain that overran its budget. When all were looked at, calls read nothing for a while, unless a
// queue of such a domain is evicted.
func TestLoadOverranRests(t *testing.T) {
	s, err := Open(Config{Path: t.TempDir(), Sync: None, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	now := s.base.Now() // only the test moves the clock
	passed := time.Duration(0)
	s.base.SetClock(func() time.Duration { return passed })
	var p docindex.Puts
	for i := range 2*maxOverranLooks + 10 {
		url := fmt.Appendf(nil, "http://h%d.test/", i)
		if err := p.Add(docindex.Put{URL: url, Due: now/1000 + 60}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	cold := &s.docs.queues.cold
	place := cold.placeOf(0)
	moves := func() bool {
		was := place.overran
		if n := cold.LoadOverran(0, 64, s.base.Now()+600_000); n != 0 {
			t.Errorf("%d queues are loaded; want none", n)
		}
		return place.overran != was
	}
	for i := 0; moves(); i++ {
		if i > 10 {
			t.Fatal("LoadOverran goes on reading")
		}
	}
	if passed += 900 * time.Millisecond; moves() {
		t.Error("after 900 ms LoadOverran reads again")
	}
	if passed += 200 * time.Millisecond; !moves() {
		t.Error("after 1,100 ms LoadOverran does not read again")
	}
	for moves() {
	}
	id, err := cold.find(0, []byte("h0.test"))
	if err == nil {
		err = cold.txn.begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	cold.evict(id, queuesched.MomentOf(s.base.Now()+300_000)-1, s.base.Now())
	if _, err := cold.txn.commit(); err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for range 5 {
		loaded += cold.LoadOverran(0, 64, s.base.Now()+600_000)
	}
	if loaded != 1 {
		t.Errorf("%d queues are loaded after one was evicted; want it", loaded)
	}
}
