package disk_test

import (
	"testing"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// open opens the store in a folder. It is closed when the test ends.
func open(t testing.TB, path string, sync disk.Sync) *disk.Store {
	t.Helper()
	s, err := disk.Open(disk.Config{Path: path, Sync: sync, Log: zerolog.New(zerolog.NewTestWriter(t))})
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
