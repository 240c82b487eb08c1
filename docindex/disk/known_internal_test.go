package disk

import "testing"

// TestKnownNames: a name is known only while the place that it shares with others has that name.
func TestKnownNames(t *testing.T) {
	k := newKnownNames()
	a := name{queue: 7, hash: [hashLen]byte{1, 2, 3, 4, 5}}
	b := a
	b.hash[hashLen-1]++
	if k.placeOf(&a) != k.placeOf(&b) {
		t.Fatal("the names are to share a place")
	}
	k.add(&a)
	if !k.has(&a) || k.has(&b) {
		t.Errorf("known %v, the other one %v; want true, false", k.has(&a), k.has(&b))
	}
	if k.remove(&b); !k.has(&a) {
		t.Error("to remove the other name removes this one")
	}
	k.add(&b)
	if k.has(&a) || !k.has(&b) {
		t.Errorf("after the other one known %v, the other one %v; want false, true", k.has(&a), k.has(&b))
	}
	if k.remove(&b); k.has(&b) {
		t.Error("it is known after its removal")
	}
}
