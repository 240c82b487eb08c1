package disk_test

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// TestPurgedURLIsNewAgain: a URL that was put often, and then purged, is not taken for known.
func TestPurgedURLIsNewAgain(t *testing.T) {
	s := open(t, t.TempDir(), disk.Batch)
	put := func(want docindex.Verdict) {
		t.Helper()
		var p docindex.Puts
		u := docindex.Put{URL: []byte("http://a.example/1"), Due: docindex.Never}
		if err := p.AddExact(u, []byte("a.example")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.Verdict(0); got != want {
			t.Fatalf("verdict %v; want %v", got, want)
		}
	}
	for range 2 {
		for _, want := range []docindex.Verdict{docindex.New, docindex.Same, docindex.Same} {
			put(want)
		}
		n, err := s.Purge(t.Context(), docindex.Scope{}, time.Now().Add(time.Hour))
		if err != nil || n != 1 {
			t.Fatalf("purged %d, %v; want 1", n, err)
		}
	}
}
