package disk

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/docindex"
)

// TestLeasesOutliveARestart leases documents of a host to another daemon. After restarts the slots get nothing
// of that host, which the other daemon may be requesting, until the outcomes have come and a gap has passed, or the
// lease has ended.
func TestLeasesOutliveARestart(t *testing.T) {
	path := t.TempDir()
	var passed atomic.Int64
	s := openAt(t, path, &passed, time.Second)
	putURLs(t, s, "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1", "http://b.test/2")
	var leased docindex.Batch
	if err := s.Lease(t.Context(), 4, nil, time.Hour, &leased); err != nil || leased.Len() != 4 {
		t.Fatalf("%d leased, %v; want 4", leased.Len(), err)
	}
	take := func(when string, want ...string) {
		t.Helper()
		var b docindex.Batch
		err := s.Candidates(t.Context(), 10, nil, &b)
		got := []string{}
		for i := range b.Len() {
			got = append(got, string(b.At(i).URL))
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the slots get %v, %v; want %v", when, got, err, want)
		}
	}
	for restart := range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, path, &passed, time.Second)
		take(fmt.Sprintf("restart %d", restart))
		n, err := s.Count(t.Context(), nil)
		if err != nil || n.InTransit != 4 || n.Scheduled != 1 {
			t.Errorf("restart %d: %+v, %v; want 4 in transit", restart, n, err)
		}
	}
	var o docindex.Outcomes
	for i := range leased.Len() {
		if url := leased.At(i).URL; string(url[:13]) == "http://a.test" {
			o.Add(docindex.Outcome{DocID: leased.At(i).DocID, URL: url, Status: 200})
		}
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	take("within the gap")
	passed.Add(int64(2 * time.Second))
	take("after the outcomes", "http://a.test/3")
	passed.Add(int64(time.Hour))
	take("within the gap after the lease")
	passed.Add(int64(2 * time.Second))
	take("after the lease", "http://b.test/1", "http://b.test/2")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, &passed, time.Second)
	n, err := s.Count(t.Context(), nil)
	if err != nil || n.Completed != 2 || n.InTransit != 0 || n.Scheduled != 3 {
		t.Errorf("at the end: %+v, %v; want 3 scheduled", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
