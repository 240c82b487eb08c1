package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// TestNames puts URLs again in a new store, and in one that was made before version 9. The names in
// the first are shorter by what depends on an owner. Both find what they had before they were opened
// again.
func TestNames(t *testing.T) {
	for name, old := range map[string]bool{"new": false, "old": true} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path, disk.Batch)
			want := []int{1 + 4 + 10, 1 + 4 + 10, 1 + 4 + 16}
			if old {
				if err := s.LongNames(); err != nil {
					t.Fatal(err)
				}
				want = []int{1 + 4 + 16, 1 + 4 + 16, 1 + 4 + 16}
			}
			plain := docindex.Put{URL: []byte("http://a.test/")}
			owned := of("", "http://a.test/", 0)
			putURLs(t, s, plain, owned)
			lengths, err := s.NameLengths()
			if err != nil || len(lengths) != 3 || lengths[0] != want[0] || lengths[1] != want[1] ||
				lengths[2] != want[2] {
				t.Errorf("keys of the queue and of both documents have %v bytes, %v; want %v", lengths, err, want)
			}
			s = again(t, s, path)
			putURLs(t, s, plain, owned)
			if n := s.Stats(); n.Scheduled != 2 {
				t.Errorf("put again, there are %+v; want 2 scheduled", n)
			}
			docs := serve(t, s, docindex.Request{PerQueue: 10})
			if len(docs) != 2 {
				t.Errorf("%d documents are handed out; want 2", len(docs))
			}
		})
	}
}

// TestCloseLeavesNoLogs closes a store that has begun several logs. No log takes room then.
func TestCloseLeavesNoLogs(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	s.Hurry()
	putHosts(t, s, 5000, "a")
	logs := func() (bytes int64) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(path, "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			bytes += info.Size()
		}
		return bytes
	}
	if n := logs(); n < 100_000 {
		t.Errorf("while it is open, its logs have %d bytes", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := logs(); n > 1000 {
		t.Errorf("after it was closed, its logs have %d bytes; want next to none", n)
	}
	s = open(t, path, disk.Batch)
	if n := s.Stats(); n.Scheduled != 5000 {
		t.Errorf("opened again it has %+v; want 5000 scheduled", n)
	}
}
