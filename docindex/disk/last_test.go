package disk_test

import (
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/disk"
)

// TestLastReopened opens a store again: it knows the last outcomes of documents that are completed,
// scheduled again, in transit again, and purged with their crawl, before and after these are
// cleared.
func TestLastReopened(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, disk.Batch)
	if err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		t.Fatal(err)
	}
	ended := time.Unix(1_800_000_000, 0).UTC()
	putURLs(t, s, urls("http://a.test/completed", "http://a.test/scheduled", "http://a.test/transit")...)
	purged := docindex.Put{URL: []byte("http://b.test/purged"), Crawl: []byte("c"), Due: time.Now().Unix() + 3600,
		Metadata: []byte(`{"appid":["app"],"spiderid":["link"]}`)}
	putURLs(t, s, purged)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 3, nil, &b); err != nil || b.Len() != 3 {
		t.Fatal(b.Len(), err)
	}
	var o docindex.Outcomes
	for i := range b.Len() {
		out := docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 500 + i, At: ended}
		switch i {
		case 1:
			out.Again = time.Now().Unix() + 3600
		case 2:
			out.Again = 1
		}
		o.Add(out)
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	lease := docindex.Request{Scope: docindex.Scope{Key: []byte("a.test")}}
	if got := serve(t, s, lease); len(got) != 1 || got[0] != "http://a.test/transit" {
		t.Fatalf("served is %q", got)
	}
	id := docindex.CrawlID{Spider: "link", App: "app", Crawl: "c"}
	if err := s.StopCrawl(t.Context(), id, docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Truncate(time.Second)
	if _, err := s.PurgeCrawl(t.Context(), id, func(*docindex.Outcomes) (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	for round := range 3 {
		for url, status := range map[string]int{"completed": 500, "scheduled": 501, "transit": 502} {
			d, err := s.Find(t.Context(), docindex.Scope{Key: []byte("a.test")}, []byte("http://a.test/"+url))
			if want := (docindex.LastOutcome{Known: true, Status: status, At: ended}); err != nil || d.Last != want {
				t.Errorf("round %d: %s has the last outcome %+v, %v; want %+v", round, url, d.Last, err, want)
			}
		}
		d, err := s.Find(t.Context(), docindex.Scope{Crawl: []byte("c"), Key: []byte("b.test")}, purged.URL)
		at := d.Last.At
		d.Last.At = time.Time{}
		want := docindex.LastOutcome{Known: true, Kind: docindex.Stopped, NoStatus: true}
		if err != nil || d.Last != want || at.Before(before) || at.After(after) {
			t.Errorf("round %d: the purged one has the last outcome %+v at %v, %v; want %+v between %v and %v",
				round, d.Last, at, err, want, before, after)
		}
		if round == 1 {
			s.Hurry()
		}
		s = again(t, s, path)
	}
}
