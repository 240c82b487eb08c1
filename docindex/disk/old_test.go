package disk_test

import (
	"os"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// TestOldVersion opens a store that version 3 wrote, uses it, and opens it again.
func TestOldVersion(t *testing.T) {
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS("testdata/version3")); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, disk.Batch)
	wantOldOutcomes(t, s)
	indextest.RunOld(t, s)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	had := s.Stats()
	s = again(t, s, path)
	if is := s.Stats(); is.Completed != had.Completed || is.Scheduled != had.Scheduled {
		t.Errorf("opened again it has %+v; want %+v", is, had)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// wantOldOutcomes checks what is told of the outcomes in rows of version 3: the kind alone.
func wantOldOutcomes(t *testing.T, s *disk.Store) {
	t.Helper()
	kinds := map[docindex.Kind]int{}
	for _, crawl := range []string{"c", "s"} {
		if err := s.List(t.Context(), docindex.Scope{Crawl: []byte(crawl)}, func(d *docindex.Document) bool {
			switch {
			case d.State == docindex.Scheduled && d.Last != docindex.LastOutcome{}:
				t.Errorf("%s is scheduled, and has the last outcome %+v", d.URL, d.Last)
			case d.State != docindex.Completed:
			case !d.Last.Known || !d.Last.NoStatus || !d.Last.At.IsZero():
				t.Errorf("%s has the last outcome %+v; want its kind alone", d.URL, d.Last)
			default:
				kinds[d.Last.Kind]++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if kinds[docindex.Done] != 5 || kinds[docindex.Stopped] != 1 {
		t.Errorf("outcomes are %v; want 5 done and 1 stopped", kinds)
	}
}

// TestVersion7 opens what a crash left of a store of version 7. It has 52 documents on 40 hosts, and 30
// links in three branches of a queue.
func TestVersion7(t *testing.T) {
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS("testdata/version7")); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, disk.Batch)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	had := indextest.Count(t, s, nil)
	if had.Scheduled != 66 || had.InTransit != 3 || had.Completed != 3 {
		t.Errorf("counts are %+v; want 66 scheduled, 3 in transit, 3 completed", had)
	}
	if n := len(serve(t, s, docindex.Request{PerQueue: 100})); n != 66 {
		t.Errorf("%d documents are handed out; want 66", n)
	}
	s = again(t, s, path)
	if is := indextest.Count(t, s, nil); is.InTransit != 69 || is.Completed != had.Completed {
		t.Errorf("opened again it has %+v; want 69 in transit, 3 completed", is)
	}
}
