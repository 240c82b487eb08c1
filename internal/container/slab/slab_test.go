package slab

import (
	"math/rand/v2"
	"testing"
)

func TestSlabAgainstMap(t *testing.T) {
	var s Slab[uint64]
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[uint32]uint64{}
	ids := []uint32{}
	for step := range 100_000 {
		if len(ids) == 0 || rng.IntN(5) < 3 {
			id := s.New()
			if _, taken := model[id]; taken || id == 0 {
				t.Fatalf("step %d: New = %d, which is live or none", step, id)
			}
			if got := *s.At(id); got != 0 {
				t.Fatalf("step %d: a new record holds %d", step, got)
			}
			v := rng.Uint64()
			*s.At(id), model[id] = v, v
			ids = append(ids, id)
			continue
		}
		i := rng.IntN(len(ids))
		id := ids[i]
		if got := *s.At(id); got != model[id] {
			t.Fatalf("step %d: record %d = %d, want %d", step, id, got, model[id])
		}
		s.Free(id)
		delete(model, id)
		ids[i] = ids[len(ids)-1]
		ids = ids[:len(ids)-1]
		if s.Len() != len(model) {
			t.Fatalf("step %d: Len = %d, want %d", step, s.Len(), len(model))
		}
	}
	if s.Cap() > 100_001 {
		t.Errorf("Cap = %d: numbers are not given out again", s.Cap())
	}
}

func TestPointersStay(t *testing.T) {
	var s Slab[int]
	first := s.At(s.New())
	*first = 7
	for range 3 * chunkLen {
		s.New()
	}
	if first != s.At(1) || *first != 7 {
		t.Error("a record moved while the slab grew")
	}
}
