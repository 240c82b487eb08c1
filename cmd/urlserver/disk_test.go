package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// TestServeDisk kills a daemon with an index on disk. The next one has all documents.
func TestServeDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	seeds := write(t, "seeds", "http://a.test/1\nhttp://a.test/2\nhttp://b.test/\n")
	c := startChild(t, settings(t, "[docindex]\nkind = \"disk\"\npath = \""+path+"\"\nseeds = [\""+seeds+
		"\"]\n"))
	if _, err := disk.Open(disk.Config{Path: path}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened beside the daemon: %v; want that it is in use", err)
	}
	c.signal(syscall.SIGKILL)
	c.wait()
	s, err := disk.Open(disk.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if n := indextest.Count(t, s, nil); n.Queues != 2 || n.Scheduled+n.InTransit+n.Completed != 3 {
		t.Errorf("after the kill the index has %+v; want 3 URLs in 2 queues", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
