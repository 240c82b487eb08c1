package disk_test

import (
	"os"
	"testing"

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
