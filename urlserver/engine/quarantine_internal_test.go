package engine

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// TestQuarantineAgainstMap compares a quarantine with a map while documents end, some of them twice,
// and are forgotten a minute later: one at a time, many together, and all of them.
func TestQuarantineAgainstMap(t *testing.T) {
	const lasts = time.Minute
	q, endedAt := newQuarantine(), map[string]time.Duration{}
	rng := rand.New(rand.NewPCG(5, 6))
	now := time.Duration(0)
	for step := range 100_000 {
		switch rng.IntN(1000) {
		case 0:
			now += 2 * lasts
		case 1, 2, 3:
			now += lasts / 2
		default:
			now += time.Duration(rng.IntN(2)) * lasts / 500
		}
		id := strconv.Itoa(rng.IntN(2000))
		q.readAhead([]byte(id))
		at, known := endedAt[id]
		if got, want := q.has([]byte(id), now-lasts), known && at > now-lasts; got != want {
			t.Fatalf("step %d, document %s: has = %v; want %v", step, id, got, want)
		}
		if rng.IntN(3) > 0 {
			q.add([]byte(id), now)
			endedAt[id] = now
		}
	}
	if q.drop(now); q.ended.Len() != 0 || q.byHash.Len() != 0 || len(q.recent) != 0 {
		t.Errorf("%d entries, %d in the hash index and %d beside it are left; want none", q.ended.Len(),
			q.byHash.Len(), len(q.recent))
	}
}
