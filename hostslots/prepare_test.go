package hostslots

import (
	"math"
	"testing"
	"time"
)

// TestPrepare prepares candidates and transactions that are known and such that are not, at each
// stage of a document's way.
func TestPrepare(t *testing.T) {
	w := &crowd{s: New(benchConfig(1)), now: time.Second}
	names := []TransID{{}, {Active: 1}, {Slot: 1}, {Slot: math.MaxUint32, Active: math.MaxUint32}}
	prepare := func(worth bool) {
		w.s.PrepareOffers([][]byte{[]byte("http://host-0000000.example"), []byte("http://unknown.example"), nil},
			[][]byte{[]byte("unknown"), nil, []byte("\x00\x00\x00\x00\x00\x00\x00\x01")})
		w.s.PrepareDone(names)
		if n := w.s.docs.Len(); w.s.worthPreparing() != worth {
			t.Errorf("%d groups, %d documents: worth preparing is %v; want %v", w.s.groups.Len(), n, !worth, worth)
		}
	}
	prepare(false)
	origins := w.addSites(0, fewGroups, addrNo)
	prepare(false)
	w.offer(origins[0])
	prepare(true)
	sel, _, ok := w.s.Next(w.now)
	if !ok {
		t.Fatal("Next selects nothing")
	}
	trans := w.s.Send(w.now, sel, 1)
	names = append(names, trans)
	prepare(true)
	if state, _ := w.s.Lookup(trans); state != Live {
		t.Errorf("state %v; want %v", state, Live)
	}
	doc := w.s.Done(w.now, trans, 200, 0)
	prepare(true)
	w.s.End(w.now, doc)
	w.offer(origins[1])
	prepare(true)
}
