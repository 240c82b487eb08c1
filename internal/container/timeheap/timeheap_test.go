package timeheap

import (
	"maps"
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
	orders := map[string]func(rng *rand.Rand, step int) time.Duration{
		"any order": func(rng *rand.Rand, _ int) time.Duration { return time.Duration(rng.IntN(50)) },
		"in order":  func(_ *rand.Rand, step int) time.Duration { return time.Duration(step / 3) },
		"two gaps": func(rng *rand.Rand, step int) time.Duration {
			return time.Duration(step + 100 + 900*rng.IntN(2))
		},
		"a few late": func(rng *rand.Rand, step int) time.Duration {
			return time.Duration(step + max(0, rng.IntN(1000)-980)*10)
		},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				runAgainstModel(t, rand.New(rand.NewPCG(seed, 1)), order)
			}
		})
	}
}

func runAgainstModel(t *testing.T, rng *rand.Rand, order func(rng *rand.Rand, step int) time.Duration) {
	t.Helper()
	model := &slow{due: map[uint32]time.Duration{}, seq: map[uint32]int{}}
	h := Heap{seq: ^uint32(0) - 500} // wraps around during the test
	for step := range 3000 {
		id := uint32(1 + rng.IntN(200))
		if first, _, ok := h.Min(); ok && rng.IntN(3) == 0 {
			id = first
		}
		if rng.IntN(3) == 0 {
			h.Remove(id)
			delete(model.due, id)
		} else {
			due := order(rng, step)
			h.Set(id, due)
			model.set(id, due)
		}
		want, wantOK := model.min()
		got, due, ok := h.Min()
		if ok != wantOK || ok && (got != want || due != model.due[want] || due != h.Due(got)) {
			t.Fatalf("step %d: Min = %d at %v, %v; want %d, %v", step, got, due, ok, want, wantOK)
		}
		if h.Len() != len(model.due) || h.Has(id) != has(model.due, id) {
			t.Fatalf("step %d: Len = %d, want %d", step, h.Len(), len(model.due))
		}
	}
	listed := map[uint32]time.Duration{}
	h.Each(func(id uint32, due time.Duration) bool { listed[id] = due; return true })
	if !maps.Equal(listed, model.due) {
		t.Fatalf("Each yields %v; want %v", listed, model.due)
	}
}

// TestGapsOfRun: records that are removed leave no memory behind, also if the first one stays.
func TestGapsOfRun(t *testing.T) {
	var h Heap
	h.Set(1, 0)
	for due := range time.Duration(100_000) {
		h.Set(2, due)
		h.Set(3, due)
	}
	if n := len(h.run.chunks); n > 3 || h.Len() != 3 || len(h.entries) > 0 {
		t.Errorf("%d chunks and %d other entries for 3 records", n, len(h.entries))
	}
	for id := range uint32(3) {
		if got, _, _ := h.Min(); got != id+1 {
			t.Errorf("Min = %d; want %d", got, id+1)
		}
		h.Remove(id + 1)
	}
}

// TestNumbersOfRun: the numbers of the run's entries begin again at 0.
func TestNumbersOfRun(t *testing.T) {
	h := Heap{}
	h.run.base = numbers - 3*chunkLen - 7
	h.run.first, h.run.end = h.run.base, h.run.base
	const n = 500
	for i := range 10 * uint32(n) {
		if id, _, ok := h.Min(); ok && i >= n {
			if id != i-n+1 {
				t.Fatalf("Min = %d; want %d", id, i-n+1)
			}
			h.Remove(id)
		}
		h.Set(i+1, time.Duration(i))
	}
	if h.Len() != n || h.run.base > numbers/2 {
		t.Errorf("Len = %d; want %d; the numbers begin at %d", h.Len(), n, h.run.base)
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
