package indextest

import (
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// A document that is deleted while a URL Frontier client has leased it blocks its host until the
// lease ends or the client reports it.
var orphanCases = []testCase{
	{"a leased URL's queue is deleted", func(t *testing.T, s docindex.Store) { orphaned(t, s, deleteQueue, false) }},
	{"a leased URL's queue is deleted, and the URL reported",
		func(t *testing.T, s docindex.Store) { orphaned(t, s, deleteQueue, true) }},
	{"a leased URL's crawl is deleted", func(t *testing.T, s docindex.Store) {
		orphaned(t, s, func(t *testing.T, s docindex.Store) (int, error) {
			return s.Delete(t.Context(), docindex.Scope{})
		}, false)
	}},
	{"a leased URL is purged", func(t *testing.T, s docindex.Store) {
		orphaned(t, s, func(t *testing.T, s docindex.Store) (int, error) {
			return s.Purge(t.Context(), docindex.Scope{}, time.Now().Add(time.Hour))
		}, true)
	}},
	{"leased URLs of a queue with several hosts are purged", func(t *testing.T, s docindex.Store) {
		add(t, s, keyed("k", "http://a.test/1", "http://b.test/1")...)
		orphanedMixed(t, s, purgeAll, "http://a.test/1", "http://b.test/1")
	}},
	{"leased URLs of a queue with several hosts are deleted", func(t *testing.T, s docindex.Store) {
		add(t, s, keyed("k", "http://a.test/1", "http://b.test/1")...)
		orphanedMixed(t, s, deleteAll, "http://a.test/1", "http://b.test/1")
	}},
	{"a leased URL is purged whose queue has several hosts since", func(t *testing.T, s docindex.Store) {
		add(t, s, urls("http://a.test/1")...)
		orphanedMixed(t, s, purgeAll, "http://a.test/1")
	}},
	{"a leased URL is deleted whose queue has several hosts since", func(t *testing.T, s docindex.Store) {
		add(t, s, urls("http://a.test/1")...)
		orphanedMixed(t, s, deleteAll, "http://a.test/1")
	}},
}

// orphanedMixed is orphaned with URLs of one queue, which has several hosts before it is forgotten.
func orphanedMixed(t *testing.T, s docindex.Store, forget func(*testing.T, docindex.Store), leased ...string) {
	wantURLs(t, call(t, s, any), leased...)
	add(t, s, keyed("a.test", "http://c.test/1")...)
	forget(t, s)
	for _, url := range leased {
		add(t, s, crawled("other", url)...)
	}
	wantNothingFor(t, s, 59*time.Second)
	var got []string
	for len(got) < len(leased) {
		got = append(got, servedWithin(t, s, 5*time.Second, any)...)
	}
	slices.Sort(got)
	wantURLs(t, got, leased...)
}

func deleteQueue(t *testing.T, s docindex.Store) (int, error) {
	return s.Delete(t.Context(), docindex.Scope{Key: []byte("a.test")})
}

func orphaned(t *testing.T, s docindex.Store, forget func(*testing.T, docindex.Store) (int, error), reports bool) {
	in := func(crawl string) docindex.Put {
		return docindex.Put{URL: []byte("http://a.test/2"), Crawl: []byte(crawl)}
	}
	request := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Minute}
	add(t, s, docindex.Put{URL: []byte("http://a.test/1")})
	wantURLs(t, call(t, s, request), "http://a.test/1")
	if n, err := forget(t, s); err != nil || n != 1 {
		t.Fatalf("%d forgotten, %v; want 1", n, err)
	}
	add(t, s, in(""), in("other"))
	time.Sleep(30 * time.Second)
	wantURLs(t, call(t, s, request))
	wantTexts(t, take(t, s, 9))
	if reports {
		add(t, s, docindex.Put{URL: []byte("http://a.test/1"), Update: true, Due: docindex.Never})
	} else {
		time.Sleep(29 * time.Second)
		wantURLs(t, call(t, s, request))
		wantTexts(t, take(t, s, 9))
		time.Sleep(2 * time.Second)
	}
	if b := take(t, s, 1); b.Len() != 1 {
		t.Error("nothing is handed out when the host is free again")
	}
}
