package disk_test

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// TestBlocks opens a store by turns with blocks of rows and of columns in new tables. Each time it puts URLs of
// which half are known.
func TestBlocks(t *testing.T) {
	t.Cleanup(func() { disk.Columns(true) })
	path := t.TempDir()
	const urls = 2000
	for i, columns := range []bool{true, false, true, false} {
		disk.Columns(columns)
		s := open(t, path, disk.Batch)
		var p docindex.Puts
		for n := i * urls / 2; n < i*urls/2+urls; n++ {
			put := docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%d", n%100, n), Due: docindex.Now}
			if err := p.Add(put); err != nil {
				t.Fatal(err)
			}
		}
		res, err := s.Put(t.Context(), &p)
		if err != nil || i > 0 && res.Known != urls/2 {
			t.Errorf("time %d: %+v, %v; want %d known", i, res, err, urls/2)
		}
		s = again(t, s, path)
		if n := indextest.Count(t, s, nil); n.Scheduled != uint64(urls+i*urls/2) {
			t.Errorf("time %d: %+v; want %d scheduled", i, n, urls+i*urls/2)
		}
		if err := s.Check(); err != nil {
			t.Errorf("time %d: %v", i, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
