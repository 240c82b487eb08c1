package frontier_test

import (
	"fmt"
	"testing"
	"time"

	pb "urlserver/api/urlfrontier"
	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/docindex/memory"
	"urlserver/frontier"
)

// A crawl is the same thing at every door: crawl ID, and the metadata appid, spiderid, expires and
// priority.
func TestCrawlControl(t *testing.T) {
	store := memory.New()
	r := newRig(t, func(cfg *frontier.Config) { cfg.Store = store })
	values := func(v string) *pb.StringList { return &pb.StringList{Values: []string{v}} }
	item := func(url, priority string) *pb.URLItem {
		return discoveredInfo(&pb.URLInfo{Url: url, CrawlID: "c1", Metadata: map[string]*pb.StringList{
			"appid": values("testapp"), "spiderid": values("wandering"),
			"expires": values(fmt.Sprint(time.Now().Unix() - 1)), "priority": values(priority),
		}})
	}
	id := docindex.CrawlID{Spider: "wandering", App: "testapp", Crawl: "c1"}
	pending := func() docindex.CrawlPending {
		t.Helper()
		v, err := store.ReportPending(t.Context(), id, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Crawls[0]
	}
	r.put(item("http://www.a.test/", "5"), item("http://b.a.test/", "8"))
	if c := pending(); c.Pending != (docindex.Pending{Total: 2, Low: 5, High: 8}) || c.Distinct != 1 {
		t.Errorf("pending is %+v", c)
	}
	overdue := must[[]docindex.CrawlEnd](t)(store.CrawlsToEnd(t.Context(), time.Now(), 10))
	if len(overdue) != 1 || overdue[0] != (docindex.CrawlEnd{CrawlID: id, Expired: true}) {
		t.Errorf("overdue are %v", overdue)
	}
	if got := r.get(&pb.GetParams{MaxUrlsPerQueue: 10, MaxQueues: 10,
		Item: &pb.GetParams_AnyCrawlID{AnyCrawlID: &pb.AnyCrawlID{}}, DelayRequestable: 60}); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if c := pending(); c.Total != 0 {
		t.Errorf("%d pending; a client has all", c.Total)
	}
	deleted := must[*pb.Long](t)(r.DeleteCrawl(t.Context(), &pb.DeleteCrawlMessage{Value: "c1"}))
	if counts := indextest.CrawlCounts(t, store, 10); deleted.Value != 2 || len(counts) != 1 {
		t.Errorf("%d deleted; counts are %+v", deleted.Value, counts)
	}
	if err := store.StopCrawl(t.Context(), id, docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	for url, status := range r.put(item("http://c.test/", "5")) {
		if status != pb.AckMessage_SKIPPED {
			t.Errorf("%s of a stopped crawl is %v; want it skipped", url, status)
		}
	}
}
