package disk_test

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

func TestDueLater(t *testing.T) { indextest.DueLater(t, open(t, t.TempDir(), disk.None)) }

// TestDueLaterReopened opens a store again. What is due later counts so once the store has looked
// at its queues, which it does when it is asked for candidates.
func TestDueLaterReopened(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	for _, u := range []string{"http://a.test/1", "http://a.test/2", "http://b.test/3"} {
		putURLs(t, s, docindex.Put{URL: []byte(u), Due: time.Now().Unix() + 3600})
	}
	putURLs(t, s, urls("http://c.test/")...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, disk.Batch)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 10, nil, &b); err != nil {
		t.Fatal(err)
	}
	got := indextest.Count(t, s, nil)
	if got.Later != 3 || got.Scheduled+got.InTransit != 4 {
		t.Errorf("after opening again: %+v; want 3 due later and one that is not", got)
	}
}
