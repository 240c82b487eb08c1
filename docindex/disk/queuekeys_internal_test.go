package disk

import (
	"fmt"
	"math"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// TestNumberOfAnotherQueue: the number that is remembered for a key may be that of a queue with another
// key, or of none.
func TestNumberOfAnotherQueue(t *testing.T) {
	s := openCold(t, t.TempDir())
	defer s.Close()
	putFresh(t, s, 0, fewCold+1)
	putFresh(t, s, 0, fewCold+1) // which finds all by their rows
	numbers := &s.queues.numbers
	if n := numbers.index.Len(); n != fewCold+1 {
		t.Fatalf("%d numbers are remembered; want %d", n, fewCold+1)
	}
	later := func() {
		t.Helper()
		var p docindex.Puts
		if err := p.Add(docindex.Put{URL: []byte("http://h0.test/later"), Crawl: []byte("two"),
			Due: s.base.Now() + 3_600_000}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	later()
	later() // which finds it by its row
	key := s.docs.namer.keyName([]byte("one"), []byte("h0.test"))
	other := s.docs.namer.keyName([]byte("one"), []byte("h1.test"))
	sameHost := s.docs.namer.keyName([]byte("two"), []byte("h0.test"))
	own := numbers.find(&key)
	for _, no := range []uint32{numbers.find(&other), numbers.find(&sameHost), 99} {
		for hosts := fewCold; hosts <= fewCold+1; hosts++ { // the rows are read one at a time, and together
			numbers.remove(&key, numbers.find(&key))
			numbers.add(&key, no)
			var p docindex.Puts
			for i := range hosts {
				url := fmt.Appendf(nil, "http://h%d.test/", i)
				if err := p.Add(docindex.Put{URL: url, Crawl: []byte("one")}); err != nil {
					t.Fatal(err)
				}
			}
			if res, err := s.Put(t.Context(), &p); err != nil || no == 0 || res.Known != hosts {
				t.Errorf("with %d as number of queue %d: %+v, %v; want %d known URLs", no, own, res, err, hosts)
			}
		}
	}
}

// TestQueueNumbers: a number is remembered until it is removed, while there is room. Of keys with one hash
// the first has its number remembered.
func TestQueueNumbers(t *testing.T) {
	x := newQueueNumbers(1)
	for i := range uint64(2 * leastNumbers) {
		x.add(madeName(0, i), uint32(i+1))
	}
	if x.index.Len() != leastNumbers || x.find(madeName(0, 7)) != 8 || x.find(madeName(0, leastNumbers)) != 0 {
		t.Errorf("%d numbers; of queue 8: %d; of one too many: %d", x.index.Len(), x.find(madeName(0, 7)),
			x.find(madeName(0, leastNumbers)))
	}
	one := madeName(0, 7)
	other := *one
	other.hash[urlLen-1]++
	x.remove(&other, math.MaxUint32)
	if x.find(one) != 8 {
		t.Error("the removal of a number that was not added has removed another one")
	}
	x.remove(one, 8)
	x.add(one, 9)
	x.add(&other, 10)
	if x.find(one) != 9 || x.find(&other) != 9 {
		t.Errorf("two keys with one hash have %d and %d; want 9", x.find(one), x.find(&other))
	}
}

// TestDeletedQueueHasNoNumber: a deleted queue leaves no number behind.
func TestDeletedQueueHasNoNumber(t *testing.T) {
	s := openCold(t, t.TempDir())
	defer s.Close()
	putFresh(t, s, 0, 2)
	putFresh(t, s, 0, 2)
	if _, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	if n := s.queues.numbers.index.Len(); n != 0 {
		t.Errorf("%d numbers are left of deleted queues", n)
	}
	putFresh(t, s, 0, 2)
	if n := s.base.Sched.Total().URLs[queuesched.Scheduled]; n != 2 {
		t.Errorf("%d URLs are scheduled; want 2", n)
	}
}
