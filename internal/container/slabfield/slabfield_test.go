package slabfield

import (
	"testing"

	"urlserver/internal/container/slab"
)

func TestField(t *testing.T) {
	type pair struct{ a, b uint32 }
	type record struct {
		small uint8
		pairs [3]pair
	}
	var s slab.Slab[record]
	second := Of(&s, func(r *record) *pair { return &r.pairs[1] })
	for range 10_000 {
		id := s.New()
		second.At(id).b = id
		if got := s.At(id); got.pairs[1].b != id || second.At(id) != &got.pairs[1] {
			t.Fatalf("record %d is %+v after its second pair was set", id, *got)
		}
	}
}
