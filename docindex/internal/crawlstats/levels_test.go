package crawlstats

import (
	"math/rand/v2"
	"testing"
)

// TestLevels compares counts with a plain map, while they are few and while they are many.
func TestLevels(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for round := range 50 {
		var l PriorityCounts
		twin := map[int32]uint64{}
		for range 500 {
			p := rnd.Int32N(1+int32(round)) - 20
			switch {
			case rnd.IntN(30) == 0:
				var sum PriorityCounts
				sum.AddAll(&l)
				l = sum
			case twin[p] > 0 && rnd.IntN(3) > 0:
				l.Add(p, ^uint64(0))
				if twin[p]--; twin[p] == 0 {
					delete(twin, p)
				}
			default:
				l.Add(p, 1)
				twin[p]++
			}
			compareLevels(t, &l, twin)
		}
	}
}

func compareLevels(t *testing.T, l *PriorityCounts, twin map[int32]uint64) {
	t.Helper()
	seen := 0
	l.Each(func(p int32, n uint64) {
		seen++
		if twin[p] != n || l.Of(p) != n {
			t.Fatalf("priority %d counts %d, or %d; want %d", p, n, l.Of(p), twin[p])
		}
	})
	if seen != len(twin) || l.Len() != seen {
		t.Fatalf("%d counts, of %d; want %d", seen, l.Len(), len(twin))
	}
	low, high := l.span(nil)
	for p := range twin {
		if p < low || p > high || twin[low] == 0 || twin[high] == 0 {
			t.Fatalf("priorities are from %d to %d; there is %d", low, high, p)
		}
	}
}
