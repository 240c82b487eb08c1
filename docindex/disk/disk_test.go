package disk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// open opens the store in a folder. It is closed when the test ends.
func open(t testing.TB, path string, sync disk.Sync) *disk.Store {
	t.Helper()
	s, err := disk.Open(disk.Config{Path: path, Sync: sync, Memory: memoryOfTests(),
		Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	indextest.Run(t, func(t *testing.T) docindex.Store { return open(t, t.TempDir(), disk.None) })
}

func TestBudgets(t *testing.T) {
	indextest.RunBudgets(t, func(t *testing.T) docindex.Store { return open(t, t.TempDir(), disk.None) })
}

// TestPackedReopened opens the store anew in each state of its documents, and after their crawl was
// stopped.
func TestPackedReopened(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	crawl := docindex.CrawlID{Spider: "link", App: "a", Crawl: "c"}
	var p docindex.Puts
	for i := range 300 {
		if err := p.Add(docindex.Put{
			URL: fmt.Appendf(nil, "http://h%d.test/", i), Crawl: []byte("c"), Unique: fmt.Append(nil, "u", i),
			Depth: uint16(i), Payload: fmt.Append(nil, "p", i), Metadata: []byte(`{"appid":["a"]}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, verdict docindex.Verdict, payload bool) {
		t.Helper()
		s = again(t, s, path)
		seen := 0
		if err := s.List(t.Context(), docindex.Scope{Crawl: []byte("c")}, func(d *docindex.Document) bool {
			seen++
			var i int
			fmt.Sscanf(string(d.URL), "http://h%d.test/", &i)
			lost := payload && string(d.Payload) != fmt.Sprint("p", i)
			if lost || string(d.Unique) != fmt.Sprint("u", i) || int(d.Depth) != i {
				t.Errorf("%s: %s has unique %q, depth %d, payload %q", when, d.URL, d.Unique, d.Depth, d.Payload)
			}
			return !t.Failed()
		}); err != nil || seen != p.Len() {
			t.Errorf("%s: %d listed, %v", when, seen, err)
		}
		if _, err := s.Put(t.Context(), &p); err != nil || p.Verdict(7) != verdict {
			t.Errorf("%s: put again it is %v, %v; want %v", when, p.Verdict(7), err, verdict)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	want("scheduled", docindex.Same, true)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 100, nil, &b); err != nil || b.Len() != 100 {
		t.Fatalf("%d candidates, %v", b.Len(), err)
	}
	want("out before", docindex.Same, true)
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	want("some completed", docindex.Same, false)
	if err := s.StopCrawl(t.Context(), crawl, docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	n, err := s.PurgeCrawl(t.Context(), crawl, func(*docindex.Outcomes) (int, error) { return 0, nil })
	if err != nil || n != p.Len()-b.Len() {
		t.Errorf("%d purged, %v; want %d", n, err, p.Len()-b.Len())
	}
	want("purged", docindex.Dropped, false)
	clearSome(t, s)
	want("cleared", docindex.Dropped, false)
}

// TestListingsFailWithTheIndex has calls list an index that can no longer be read: none of them takes it
// for empty.
func TestListingsFailWithTheIndex(t *testing.T) {
	s := open(t, t.TempDir(), disk.None)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, crawls := s.Crawls(ctx)
	for what, err := range map[string]error{
		"Crawls": crawls,
		"Queues": s.Queues(ctx, nil, func([]byte, bool) bool { return true }),
		"List":   s.List(ctx, docindex.Scope{}, func(*docindex.Document) bool { return true }),
	} {
		if !errors.Is(err, disk.ErrClosed) {
			t.Errorf("%s: %v; want %v", what, err, disk.ErrClosed)
		}
	}
}
