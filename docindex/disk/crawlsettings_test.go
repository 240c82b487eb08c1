package disk_test

import (
	"maps"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
)

// What was set for crawls, and how many documents ended as out of scope, is there after a restart.
func TestCrawlSettingsAgain(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	want := map[string]string{"": "all", "c": "{}", "\xff": "last"}
	for crawl, text := range want {
		indextest.SetCrawlSettings(t, s, crawl, text)
	}
	indextest.SetCrawlSettings(t, s, "gone", "{}")
	indextest.SetCrawlSettings(t, s, "gone", "")
	putURLs(t, s, urls("http://a.test/1", "http://a.test/2")...)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 1, nil, &b); err != nil {
		t.Fatal(err)
	}
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Kind: docindex.OutOfScope, NoStatus: true})
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	s = again(t, s, path)
	putURLs(t, s, urls("http://a.test/3")...) // the journal is written anew
	s = again(t, s, path)
	if got, _ := indextest.CrawlSettings(t, s); !maps.Equal(got, want) {
		t.Errorf("after restarts there is %q; want %q", got, want)
	}
	st := s.Stats()
	if st.Outcomes[docindex.OutOfScope] != 1 || st.Scheduled != 2 || st.Completed != 1 {
		t.Errorf("after restarts: %+v; want one outcome out_of_scope, two documents scheduled", st)
	}
	d, err := s.Document(t.Context(), o.At(0).DocID)
	if err != nil || d.Last.Kind != docindex.OutOfScope || !d.Last.Known {
		t.Errorf("it ended as %+v, %v", d.Last, err)
	}
}
