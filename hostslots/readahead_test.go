package hostslots

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestReadAhead reads ahead for candidates and transactions, known and unknown ones, at each stage of a
// document's way. The document's origin has a number that is no host's, and its host one that is no
// group's, so that a number that is taken for one of another kind is out of range.
func TestReadAhead(t *testing.T) {
	w := &crowd{s: New(benchConfig(1)), now: time.Second}
	names := []TransID{{}, {Active: 1}, {Slot: 1}, {Slot: math.MaxUint32, Active: math.MaxUint32}}
	var name []byte // of the document's host
	ahead := func(worth bool) {
		w.s.ReadOffersAhead([][]byte{name, []byte("unknown.example"), nil},
			[][]byte{[]byte("unknown"), nil, []byte("\x00\x00\x00\x00\x00\x00\x00\x01")})
		w.s.ReadDoneAhead(names)
		if n := w.s.docs.Len(); w.s.worthReadingAhead() != worth {
			t.Errorf("%d groups, %d documents: worth reading ahead is %v; want %v", w.s.groups.Len(), n, !worth, worth)
		}
	}
	ahead(false)
	const more = 1 << 13 // records, of which slab has the last in a chunk of its own
	origins := w.addSites(0, fewGroups, addrNo)
	last := w.addSites(fewGroups, more, oneAddress)[more-1]
	name = w.s.Host(w.s.HostOf(last)).Name()
	for port := range more {
		last = w.s.EnsureOrigin(fmt.Appendf(nil, "http://%s:%d", name, port), name)
	}
	ahead(false)
	w.offer(last)
	ahead(true)
	sel, _, ok := w.s.Next(w.now)
	if !ok {
		t.Fatal("Next selects nothing")
	}
	trans := w.s.Send(w.now, sel, 1)
	names = append(names, trans)
	ahead(true)
	if state, _ := w.s.Lookup(trans); state != Live {
		t.Errorf("state %v; want %v", state, Live)
	}
	doc := w.s.Done(w.now, trans, 200, 0)
	ahead(true)
	w.s.End(w.now, doc)
	w.offer(origins[1])
	ahead(true)
}
