package slabfield

import (
	"testing"

	"urlserver/internal/container/slab"
)

func TestField(t *testing.T) {
	type pair [2]uint32
	type record struct {
		_     uint8 // so that pairs do not begin at the record's begin
		pairs [3]pair
	}
	var s slab.Slab[record]
	second := Of(&s, func(r *record) *pair { return &r.pairs[1] })
	for range 10_000 {
		id := s.New()
		*second.At(id) = pair{id, id + 1}
		got, want := s.At(id), record{pairs: [3]pair{1: {id, id + 1}}}
		if *got != want || second.At(id) != &got.pairs[1] {
			t.Fatalf("record %d is %+v after its second pair was set; want %+v", id, *got, want)
		}
	}
}
