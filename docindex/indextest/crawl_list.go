package indextest

import (
	"fmt"
	"testing"

	"urlserver/docindex"
)

func crawlList(t *testing.T, s docindex.Store) {
	list := func(text string, most int) ([]docindex.CrawlState, int) {
		t.Helper()
		some, all, err := s.ListCrawls(t.Context(), text, most)
		if err != nil {
			t.Fatalf("ListCrawls: %v", err)
		}
		return some, all
	}
	if some, all := list("", 9); len(some) != 0 || all != 0 {
		t.Errorf("an empty store has %d crawls: %+v", all, some)
	}
	put(t, s, crawlPut("ended", "http://a.test/1", 0), crawlPut("ended", "http://b.test/1", 0))
	end(t, s, take(t, s, 1))
	call(t, s, any)
	put(t, s, crawlPut("stopped", "http://a.test/1", 0))
	stopCrawl(t, s, "stopped", nil)
	put(t, s, crawlPut("stopped", "http://late.test/", 0))
	const many = 2500 // more than a portion
	for i := range many {
		put(t, s, crawlPut(fmt.Sprintf("other%04d", i), "http://c.test/", 0))
	}
	last := crawlPut("largest", "http://d.test/1", 0)
	last.Metadata = []byte(`{"appid":["app"],"spiderid":["link"],"expires":["4000000000"]}`)
	put(t, s, last, crawlPut("largest", "http://d.test/2", 0))

	some, all := list("", 3)
	if all != many+3 || len(some) != 3 {
		t.Fatalf("%d of %d crawls; want 3 of %d", len(some), all, many+3)
	}
	want := docindex.CrawlState{CrawlID: crawlID("largest"), Scheduled: 2, Expires: 4_000_000_000}
	if some[0] != want {
		t.Errorf("the first is %+v; want %+v", some[0], want)
	}
	if some[1].Crawl != "ended" || some[1].AtClients != 1 || some[1].Done != 1 || some[2].Crawl != "other0000" {
		t.Errorf("behind it are %+v; want ended, one at a client and one done, and other0000", some[1:])
	}
	some, all = list("stop", 3)
	want = docindex.CrawlState{CrawlID: crawlID("stopped"), Purged: 1, Dropped: 1, Stopped: true, Why: docindex.Stopped}
	if all != 1 || len(some) != 1 || some[0] != want {
		t.Errorf("stopped are %d, %+v; want %+v", all, some, want)
	}
	behind := crawlPut("other", "http://c.test/", 0)
	behind.Metadata = []byte(`{"appid":["zapp"],"spiderid":["link"]}`)
	put(t, s, behind)
	some, all = list("other", 3)
	if all != many+1 || len(some) != 3 || some[0].Crawl != "other0000" || some[2].CrawlID !=
		(docindex.CrawlID{Spider: "link", App: "zapp", Crawl: "other"}) {
		t.Errorf("with other in their names are %d crawls: %+v; want the one of that ID among them", all, some)
	}
	if some, all = list("app", 1); all != many+4 || len(some) != 1 {
		t.Errorf("%d of %d crawls of the applications; want 1 of %d", len(some), all, many+4)
	}
}
