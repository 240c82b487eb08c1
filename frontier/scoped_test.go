package frontier_test

import (
	"testing"
	"time"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/frontier"
	"urlserver/internal/scope"
)

// with is a URL that was found, with metadata: names and values in turns.
func with(url, crawl string, metadata ...string) *pb.URLItem {
	info := &pb.URLInfo{Url: url, CrawlID: crawl, Metadata: map[string]*pb.StringList{}}
	for i := 0; i < len(metadata); i += 2 {
		info.Metadata[metadata[i]] = &pb.StringList{Values: metadata[i+1 : i+2]}
	}
	return discoveredInfo(info)
}

// Metadata says via, depth and unique: links inherit the crawl of their page, and its scope holds.
func TestMetadataOfScopes(t *testing.T) {
	s := scoped.New(memory.New())
	r := newRig(t, func(c *frontier.Config) { c.Store = s })
	one := 1
	err := s.SetCrawl(t.Context(), "c", scoped.Change{Scope: &scope.Scope{MaxDepth: &one, Deny: []string{"/x"}}})
	if err != nil {
		t.Fatal(err)
	}
	var page docindex.Puts
	err = page.Add(docindex.Put{URL: []byte("http://a.test/"), DocID: []byte("page"), Crawl: []byte("c")})
	if err != nil {
		t.Fatal(err)
	}
	must[docindex.PutResult](t)(s.Put(t.Context(), &page))
	for _, c := range []struct {
		item *pb.URLItem
		want pb.AckMessage_Status
	}{
		{with("http://a.test/1", "", "via", "page"), pb.AckMessage_OK},
		{with("http://a.test/x", "", "via", "page"), pb.AckMessage_SKIPPED},
		{with("http://a.test/2", "", "via", "nobody"), pb.AckMessage_FAIL},
		{with("http://a.test/3", "c", "depth", "1"), pb.AckMessage_OK},
		{with("http://a.test/4", "c", "depth", "2"), pb.AckMessage_SKIPPED},
		{with("http://a.test/5", "", "unique", "u"), pb.AckMessage_OK},
		{with("http://a.test/6", "", "unique", "u"), pb.AckMessage_SKIPPED},
	} {
		for id, got := range r.put(c.item) {
			if got != c.want {
				t.Errorf("%s: %v; want %v", id, got, c.want)
			}
		}
	}
	link := docindex.Scope{Crawl: []byte("c"), Key: []byte("a.test")}
	if doc, err := s.Find(t.Context(), link, []byte("http://a.test/1")); err != nil || doc.Depth != 1 {
		t.Errorf("the link is at depth %d of crawl c, %v; want 1", doc.Depth, err)
	}
}

// Metadata says lastmod: a known URL goes out again if that is after its last fetch.
func TestMetadataOfLastMod(t *testing.T) {
	s := scoped.New(memory.New())
	r := newRig(t, func(c *frontier.Config) { c.Store = s })
	const url = "http://a.test/"
	r.put(discovered(url))
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
		t.Fatalf("%d candidates, %v", b.Len(), err)
	}
	fetched := time.Now().Add(-2 * time.Hour)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: []byte(url), Status: 200, At: fetched})
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lastMod string
		want    docindex.State
	}{
		{"no date", docindex.Completed}, {"2001-02-03", docindex.Completed},
		{fetched.Add(-time.Hour).Format(time.RFC3339), docindex.Completed},
		{fetched.Add(time.Hour).Format(time.RFC3339), docindex.Scheduled},
	} {
		r.put(with(url, "", "lastmod", c.lastMod))
		doc, err := s.Find(t.Context(), docindex.Scope{Key: []byte("a.test")}, []byte(url))
		if err != nil || doc.State != c.want {
			t.Errorf("with lastmod %s it is %v, %v; want %v", c.lastMod, doc.State, err, c.want)
		}
	}
}
