package disk_test

import (
	"fmt"
	"os"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// TestUpgrade opens what a crash leaves of a store of version 6, and of one whose upgrade was
// interrupted before its end.
func TestUpgrade(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	if err := s.LongNames(); err != nil {
		t.Fatal(err)
	}
	set(t, s, docindex.SetDelay, "", 0)
	var puts []docindex.Put
	for i := range 300 {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://host-%d.test/%d", i%100, i),
			Crawl: fmt.Appendf(nil, "crawl %d", i%2)})
	}
	putURLs(t, s, puts...)
	set(t, s, docindex.SetLimit, "host-7.test", 5)
	leased := len(serve(t, s, docindex.Request{PerQueue: 1, MaxQueues: 50}))
	ended := candidates(t, s)
	for i := range ended {
		putURLs(t, s, docindex.Put{URL: []byte(ended[i]), Crawl: crawlOfURL(ended[i]), Update: true,
			Due: docindex.Never})
	}
	had := indextest.Count(t, s, nil)
	if leased == 0 || had.Completed == 0 || had.Scheduled == 0 {
		t.Fatalf("%d are leased, and the counts are %+v", leased, had)
	}
	for _, rows := range []bool{true, false} {
		if err := s.AsVersion6(rows); err != nil {
			t.Fatal(err)
		}
		crashed := t.TempDir()
		if err := os.CopyFS(crashed, os.DirFS(path)); err != nil {
			t.Fatal(err)
		}
		s, path = open(t, crashed, disk.Batch), crashed
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		got := indextest.Count(t, s, nil)
		if got.Completed != had.Completed || got.InTransit != uint64(leased) || got.Scheduled != had.Scheduled {
			t.Errorf("counts are %+v; want %+v", got, had)
		}
	}
	if len(candidates(t, s)) == 0 {
		t.Error("nothing is handed out")
	}
}

// crawlOfURL returns the crawl of a URL of TestUpgrade.
func crawlOfURL(url string) []byte {
	var host, i int
	fmt.Sscanf(url, "http://host-%d.test/%d", &host, &i)
	return fmt.Appendf(nil, "crawl %d", i%2)
}
