package scoped_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
)

// TestListCountsTheID lists a crawl ID with documents of an application and others.
func TestListCountsTheID(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		owned := func(app, crawl, url string) docindex.Put {
			return docindex.Put{URL: []byte(url), Crawl: []byte(crawl),
				Metadata: docindex.EncodeMetadata(map[string][]string{"appid": {app}})}
		}
		put(t, s, owned("app", "c", "http://a.test/1"), owned("app", "c", "http://b.test/1"))
		put(t, s, of("c", "http://a.test/2", "http://b.test/2", "http://c.test/")...)
		put(t, s, owned("app", "three", "http://d.test/1"), owned("app", "three", "http://d.test/2"),
			owned("app", "three", "http://d.test/3"))
		list := func(text string) []docindex.CrawlState {
			t.Helper()
			some, all, err := s.ListCrawls(t.Context(), text, 10)
			if err != nil || all != len(some) {
				t.Fatalf("%d of %d crawls, %v", len(some), all, err)
			}
			return some
		}
		one := func(app, crawl string, scheduled, atSlots, done uint64) docindex.CrawlState {
			id := docindex.CrawlID{Spider: docindex.DefaultSpider, App: app, Crawl: crawl}
			return docindex.CrawlState{CrawlID: id, Scheduled: scheduled, AtSlots: atSlots, Done: done}
		}
		if got, want := list(""), []docindex.CrawlState{
			one("app", "c", 5, 0, 0), one("app", "three", 3, 0, 0),
		}; !slices.Equal(got, want) {
			t.Errorf("the list is %+v; want %+v", got, want)
		}
		if got, want := list("app")[1], one("app", "c", 2, 0, 0); got != want {
			t.Errorf("by the application's name it is %+v; want %+v", got, want)
		}
		urls, _ := take(t, s)
		if got := list("c"); len(got) != 1 || got[0].Scheduled+got[0].AtSlots != 5 || len(urls) == 0 ||
			got[0].AtSlots == 0 {
			t.Errorf("after %d went to the slots the list is %+v; want five open documents", len(urls), got)
		}
		put(t, s, owned("other", "c", "http://a.test/3"))
		for _, c := range list("c") {
			if n := map[string]uint64{"app": 2, "other": 1}[c.App]; c.Scheduled+c.AtSlots != n {
				t.Errorf("of two applications: %+v; want %d open documents", c, n)
			}
		}
	})
}

// TestListCountsDropped: what is put for a stopped ID counts as dropped, whether or not an application has
// documents of it.
func TestListCountsDropped(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		owner := docindex.EncodeMetadata(map[string][]string{"appid": {"app"}})
		owned := docindex.Put{URL: []byte("http://a.test/"), Crawl: []byte("owned"), Metadata: owner}
		put(t, s, owned)
		put(t, s, of("plain", "http://a.test/")...)
		for _, id := range []string{"owned", "plain"} {
			if err := s.StopCrawlID(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		owned.URL = []byte("http://a.test/2")
		put(t, s, owned)
		put(t, s, of("plain", "http://a.test/2", "http://a.test/3")...)
		list, _, err := s.ListCrawls(t.Context(), "", 10)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v, %v; want two crawls", list, err)
		}
		for _, c := range list {
			if want := map[string]uint64{"owned": 1, "plain": 2}[c.Crawl]; c.Dropped != want {
				t.Errorf("%+v; want %d dropped", c, want)
			}
		}
	})
}

// TestListHasID: a crawl that has settings alone is in the list of who looks for its ID, though many others
// have the ID in their names.
func TestListHasID(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		for i := range 3 {
			put(t, s, docindex.Put{URL: []byte("http://a.test/"), Crawl: fmt.Append(nil, "news", i),
				Metadata: docindex.EncodeMetadata(map[string][]string{"appid": {"app"}})})
		}
		for _, id := range []string{"all news", "news", "news of old"} {
			if err := s.StopCrawlID(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		for most := range 8 {
			list, all, err := s.ListCrawls(t.Context(), "news", most)
			has := slices.ContainsFunc(list, func(c docindex.CrawlState) bool { return c.Crawl == "news" })
			if err != nil || all != 6 || len(list) != min(most, 6) || has != (most > 0) {
				t.Errorf("%d of %d crawls, %v: %+v; want %d of 6, and news among them", len(list), all, err, list,
					min(most, 6))
			}
		}
	})
}

// countless is a store whose counts fail while failure is set.
type countless struct {
	docindex.Store
	counts  int
	failure error
}

func (c *countless) Count(ctx context.Context, of *docindex.Scope) (docindex.Counts, error) {
	if c.counts++; c.failure != nil {
		return docindex.Counts{}, c.failure
	}
	return c.Store.Count(ctx, of)
}

// TestListWithoutCounts lists crawls where the counts of their IDs are not known, or would take long: the
// counts are those of the applications.
func TestListWithoutCounts(t *testing.T) {
	within := &countless{Store: memory.New()}
	s := scoped.New(within)
	owned := func(app, crawl string) docindex.Put {
		return docindex.Put{URL: fmt.Appendf(nil, "http://%s.test/", app), Crawl: []byte(crawl),
			Metadata: docindex.EncodeMetadata(map[string][]string{"appid": {app}})}
	}
	put(t, s, owned("a", "same"), owned("b", "same"))
	check := func(what string, max, want int) {
		t.Helper()
		some, all, err := s.ListCrawls(t.Context(), "", max)
		if err != nil || len(some) != min(max, want) || all != want {
			t.Fatalf("%s: %d of %d crawls, %v; want %d of %d", what, len(some), all, err, min(max, want), want)
		}
		for _, c := range some {
			if c.Scheduled != 1 {
				t.Errorf("%s: %+v; want the application's document", what, c)
			}
		}
	}
	check("of a list that is cut", 1, 2)
	put(t, s, owned("a", "fails"))
	put(t, s, of("fails", "http://c.test/")...)
	within.failure = errors.New("no counts")
	check("without counts", 10, 3)
	within.failure, within.counts = nil, 0
	for i := range 100 {
		put(t, s, owned("a", fmt.Sprintf("crawl%d", i)))
	}
	if check("of a long list", 1000, 103); within.counts > 0 {
		t.Errorf("of a long list %d crawls are counted; want none", within.counts)
	}
}
