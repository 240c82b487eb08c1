package disk

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/docindex"
)

// openAt opens the store in a folder. Its clock shows at, in ns. Between two documents that the slots get of a host
// there is a gap.
func openAt(t *testing.T, path string, at *atomic.Int64, gap time.Duration) *Store {
	t.Helper()
	s, err := Open(Config{Path: path, Sync: Batch})
	if err != nil {
		t.Fatal(err)
	}
	s.base.SetClock(func() time.Duration { return time.Duration(at.Load()) })
	s.SetSlotGap(gap)
	return s
}

// putURLs puts URLs in one call.
func putURLs(t *testing.T, s *Store, urls ...string) {
	t.Helper()
	var p docindex.Puts
	for _, url := range urls {
		_ = p.Add(docindex.Put{URL: []byte(url)})
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// TestPausesAfterTheClockWasSetBack opens a store whose clock was a day ahead until the restart. A host is
// left alone for about as long as its pause had left, and not for a day, also after further restarts.
func TestPausesAfterTheClockWasSetBack(t *testing.T) {
	const pause = 40 * time.Second
	path := t.TempDir()
	var ahead atomic.Int64
	ahead.Store(int64(24 * time.Hour))
	put := func(s *Store, page int) {
		t.Helper()
		putURLs(t, s, fmt.Sprintf("http://a.test/%d", page), fmt.Sprintf("http://b.test/%d", page))
	}
	take := func(s *Store, when string, want int) (b docindex.Batch) {
		t.Helper()
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != want {
			t.Errorf("%s: %d candidates, %v; want %d", when, b.Len(), err, want)
		}
		return b
	}

	s := openAt(t, path, &ahead, time.Second)
	put(s, 1)
	b := take(s, "at first", 2)
	var o docindex.Outcomes
	for i := range b.Len() {
		out := docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200}
		if string(b.At(i).URL) == "http://a.test/1" {
			out.Status, out.Pause = 503, pause
		}
		o.Add(out)
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	ahead.Store(0)
	for restart := range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, path, &ahead, time.Second)
		left := map[string]time.Duration{}
		if err := s.EachPause(t.Context(), func(host []byte, d time.Duration) { left[string(host)] = d }); err != nil {
			t.Fatal(err)
		}
		if d := left["a.test"]; (d - pause).Abs() > 10*time.Second { // the test is not so slow
			t.Errorf("restart %d: a.test is left alone for %v; want about %v", restart, d, pause)
		}
	}
	put(s, 2)
	ahead.Store(int64(5 * time.Second))
	take(s, "after the gap", 1)
	ahead.Store(int64(pause + time.Second))
	take(s, "after the pause", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLeasesAfterTheClockWasSetBack opens a store whose clock was a day ahead until the restart. What a URL Frontier
// client and another daemon have is due again after about the lease, and not a day later.
func TestLeasesAfterTheClockWasSetBack(t *testing.T) {
	const lease = 10 * time.Minute
	path := t.TempDir()
	var ahead atomic.Int64
	ahead.Store(int64(24 * time.Hour))
	s := openAt(t, path, &ahead, 0)
	putURLs(t, s, "http://daemon.test/")
	var b docindex.Batch
	if err := s.Lease(t.Context(), 10, nil, lease, &b); err != nil || b.Len() != 1 {
		t.Fatalf("%d leased, %v; want 1", b.Len(), err)
	}
	putURLs(t, s, "http://client.test/")
	ask := docindex.Request{AnyCrawl: true, Lease: lease}
	if err := s.Serve(t.Context(), ask, func(*docindex.Served) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for restart := range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ahead.Store(0)
		s = openAt(t, path, &ahead, 0)
		if n, err := s.Count(t.Context(), nil); err != nil || n.InTransit != 2 {
			t.Errorf("restart %d: %+v, %v; want 2 in transit", restart, n, err)
		}
	}
	ahead.Store(int64(lease + time.Minute))
	if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != 1+2 {
		t.Errorf("after the leases: %d more, %v; want 2", b.Len()-1, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
