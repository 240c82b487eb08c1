package indextest

import (
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
)

// testCase is a test that needs time to pass.
type testCase struct {
	name string
	test func(*testing.T, docindex.Store)
}

var leaseCases = []testCase{
	{"lease runs out", leaseRunsOut},
	{"lease ends with the outcome", leaseEnds},
	{"outcome after the lease", lateOutcome},
	{"without a lease in transit for good", noLease},
	{"leases of any length", leaseLengths},
	{"returned documents keep their place", returned},
	{"no lease of nothing", leaseOfNothing},
}

func runTimed(t *testing.T, open func(t *testing.T) docindex.Store, cases []testCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.test(t, open(t)) })
		})
	}
}

// lease takes candidates with a lease of d.
func lease(t *testing.T, s docindex.Store, max int, d time.Duration) *docindex.Batch {
	t.Helper()
	var b docindex.Batch
	if err := s.Lease(t.Context(), max, nil, d, &b); err != nil {
		t.Fatalf("Lease: %v", err)
	}
	return &b
}

func leaseRunsOut(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://b.example/1")...)
	wantTexts(t, lease(t, s, 1, time.Minute), "http://a.example/1")
	time.Sleep(30 * time.Second)
	wantTexts(t, lease(t, s, 10, time.Minute), "http://b.example/1")
	time.Sleep(30*time.Second - time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(time.Second + time.Millisecond)
	wantTexts(t, lease(t, s, 10, time.Minute), "http://a.example/1")
	wantStates(t, s, 0, 2, 0)
	time.Sleep(2 * time.Minute)
	wantTexts(t, take(t, s, 10), "http://b.example/1", "http://a.example/1")
}

func leaseEnds(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://a.example/2", "http://a.example/3")...)
	lease(t, s, 1, time.Minute)
	b := lease(t, s, 1, time.Minute)
	lease(t, s, 1, time.Minute)
	end(t, s, b)
	time.Sleep(2 * time.Minute)
	wantTexts(t, take(t, s, 10), "http://a.example/1", "http://a.example/3")
	wantStates(t, s, 0, 2, 1)
}

func lateOutcome(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://b.example/1")...)
	b := lease(t, s, 2, time.Minute)
	time.Sleep(2 * time.Minute)
	wantTexts(t, take(t, s, 1), "http://a.example/1")
	end(t, s, b) // one is in transit again, the other waits
	wantStates(t, s, 0, 0, 2)
	wantTexts(t, take(t, s, 10))
}

func noLease(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1")...)
	b := take(t, s, 1)
	time.Sleep(1000 * time.Hour)
	wantTexts(t, take(t, s, 1))
	end(t, s, b)
	wantStates(t, s, 0, 0, 1)
}

func leaseLengths(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/")...)
	for _, d := range []time.Duration{5 * time.Hour, time.Second, 1024*time.Second + 1, 1 << 62} {
		lease(t, s, 1, d)
	}
	time.Sleep(2 * time.Second)
	wantTexts(t, take(t, s, 10), "http://b.example/")
	time.Sleep(1030 * time.Second)
	wantTexts(t, take(t, s, 10), "http://c.example/")
	time.Sleep(5*time.Hour - 1030*time.Second)
	wantTexts(t, take(t, s, 10), "http://a.example/")
	time.Sleep(10_000 * time.Hour)
	wantTexts(t, take(t, s, 10))
	wantStates(t, s, 0, 4, 0)
}

func returned(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://a.example/2", "http://a.example/3", "http://a.example/4")...)
	lease(t, s, 3, time.Minute)
	time.Sleep(2 * time.Minute)
	take(t, s, 0) // documents keep their order, whenever the store notices that the leases ended
	put(t, s, urls("http://a.example/5")...)
	wantTexts(t, take(t, s, 10), "http://a.example/1", "http://a.example/2", "http://a.example/3",
		"http://a.example/4", "http://a.example/5")
}

func leaseOfNothing(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1")...)
	var b docindex.Batch
	if err := s.Lease(t.Context(), 1, nil, 0, &b); err == nil {
		t.Error("a lease of 0 is granted")
	}
	wantStates(t, s, 1, 0, 0)
}
