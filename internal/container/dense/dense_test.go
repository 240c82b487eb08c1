package dense

import (
	"math/rand/v2"
	"testing"
)

// TestAgainstMap sets numbers at random and compares with a map.
func TestAgainstMap(t *testing.T) {
	var a Array[int]
	rng, model := rand.New(rand.NewPCG(1, 2)), map[uint32]int{}
	for step := range 10_000 {
		id := uint32(rng.IntN(20 * chunkLen))
		if got := a.Get(id); got != model[id] {
			t.Fatalf("step %d: %d has %d; want %d", step, id, got, model[id])
		}
		*a.At(id) = step
		model[id] = step
		if a.Cap() <= id {
			t.Fatalf("step %d: Cap() = %d after At(%d)", step, a.Cap(), id)
		}
	}
}

// TestPlacesStay checks that At always returns the same pointer for a number.
func TestPlacesStay(t *testing.T) {
	var a Array[int]
	first := a.At(3)
	for id := range uint32(50 * chunkLen) {
		a.At(id)
	}
	if *first = 7; a.Get(3) != 7 {
		t.Error("the place of a number has moved")
	}
}
