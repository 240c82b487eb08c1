package timeheap

import (
	"math/rand/v2"
	"testing"
	"time"
)

// slow is the naive model: it scans all records each time.
type slow struct {
	due map[uint32]time.Duration
	seq map[uint32]int
	n   int
}

func (s *slow) set(id uint32, due time.Duration) {
	if old, ok := s.due[id]; ok && old == due {
		return
	}
	s.n++
	s.due[id], s.seq[id] = due, s.n
}

func (s *slow) min() (best uint32, ok bool) {
	for id, due := range s.due {
		if !ok || due < s.due[best] || due == s.due[best] && s.seq[id] < s.seq[best] {
			best, ok = id, true
		}
	}
	return best, ok
}

func TestHeapAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		model := &slow{due: map[uint32]time.Duration{}, seq: map[uint32]int{}}
		h := Heap{seq: ^uint32(0) - 500} // wraps around during the test
		for step := range 3000 {
			id := uint32(1 + rng.IntN(200))
			if rng.IntN(3) == 0 {
				h.Remove(id)
				delete(model.due, id)
			} else {
				due := time.Duration(rng.IntN(50))
				h.Set(id, due)
				model.set(id, due)
			}
			want, wantOK := model.min()
			got, due, ok := h.Min()
			if ok != wantOK || ok && (got != want || due != model.due[want]) {
				t.Fatalf("seed %d step %d: Min = %d at %v, %v; want %d, %v", seed, step, got, due, ok, want, wantOK)
			}
			if h.Len() != len(model.due) || h.Has(id) != has(model.due, id) {
				t.Fatalf("seed %d step %d: Len = %d, want %d", seed, step, h.Len(), len(model.due))
			}
		}
	}
}

func has(m map[uint32]time.Duration, id uint32) bool { _, ok := m[id]; return ok }

func BenchmarkSetMin(b *testing.B) {
	for _, n := range []uint32{10_000, 1_000_000} {
		b.Run(map[uint32]string{10_000: "10k", 1_000_000: "1M"}[n], func(b *testing.B) {
			var h Heap
			rng := rand.New(rand.NewPCG(1, 1))
			for id := range n {
				h.Set(id, time.Duration(rng.IntN(1e9)))
			}
			b.ReportAllocs()
			for b.Loop() {
				id, due, _ := h.Min()
				h.Set(id, due+time.Duration(rng.IntN(1e9)))
			}
		})
	}
}
