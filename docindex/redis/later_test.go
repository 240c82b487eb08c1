package redis

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

func TestDueLater(t *testing.T) {
	server := redistest.Start(t)
	indextest.DueLater(t, openStore(t, nil, server.Addr()))
}

// TestLaterTwin does anything with documents, at virtual times, and compares how many are due later
// with the documents themselves.
func TestLaterTwin(t *testing.T) {
	server := redistest.Start(t)
	now := int64(1_900_000_000) // s
	s := openStore(t, func() int64 { return now * 1e6 }, server.Addr())
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 7))
	for step := range 150 {
		switch rng.IntN(8) {
		case 0, 1, 2:
			var p docindex.Puts
			for range 1 + rng.IntN(30) {
				if err := p.Add(laterPut(rng, now)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Put(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
		case 3, 4:
			endSome(t, s, rng, now)
		case 5:
			scope := docindex.Scope{Key: fmt.Appendf(nil, "h%d.test", rng.IntN(6)), Crawl: []byte("c")[:rng.IntN(2)]}
			if _, err := s.Delete(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
		default:
			now += rng.Int64N(20)
		}
		wantLater(t, s, now, step)
	}
}

func laterPut(rng *rand.Rand, now int64) docindex.Put {
	one := docindex.Put{
		URL:    fmt.Appendf(nil, "http://h%d.test/%d", rng.IntN(6), rng.IntN(40)),
		Crawl:  []byte("c")[:rng.IntN(2)],
		Due:    []int64{0, docindex.Now, docindex.Never, now + rng.Int64N(50), now + 1e6}[rng.IntN(5)],
		Update: rng.IntN(2) == 0,
	}
	one.Sooner = !one.Update && one.Due != docindex.Never
	return one
}

// endSome takes documents, and ends, returns or schedules them again.
func endSome(t *testing.T, s *Store, rng *rand.Rand, now int64) {
	t.Helper()
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 20, nil, &b); err != nil {
		t.Fatal(err)
	}
	var o, back docindex.Outcomes
	for i := range b.Len() {
		out := docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL}
		if rng.IntN(2) == 0 {
			out.Again = now + rng.Int64N(30)
		}
		if rng.IntN(4) == 0 {
			back.Add(out)
		} else {
			o.Add(out)
		}
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if err := s.Return(t.Context(), &back); err != nil {
		t.Fatal(err)
	}
}

func wantLater(t *testing.T, s *Store, now int64, step int) {
	t.Helper()
	all := uint64(0)
	for _, crawl := range []string{"", "c"} {
		later := uint64(0)
		if err := s.List(t.Context(), docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
			if d.State == docindex.Scheduled && d.Due > now {
				later++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if got := indextest.Count(t, s, &docindex.Scope{Crawl: []byte(crawl)}).Later; got != later {
			t.Fatalf("step %d: %d of crawl %q are due later; want %d", step, got, crawl, later)
		}
		all += later
	}
	if got := indextest.Count(t, s, nil).Later; got != all {
		t.Fatalf("step %d: %d are due later; want %d", step, got, all)
	}
}
