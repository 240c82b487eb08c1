package indextest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

// stopCrawl stops and purges a crawl. It passes the documents that are at the slots to told, and
// counts them all as ended.
func stopCrawl(t *testing.T, s docindex.Store, crawl string, told func(*docindex.Outcomes)) int {
	t.Helper()
	if err := s.StopCrawl(t.Context(), crawlID(crawl), docindex.Stopped); err != nil {
		t.Fatalf("Refuse: %v", err)
	}
	n, err := s.PurgeCrawl(t.Context(), crawlID(crawl), func(o *docindex.Outcomes) (int, error) {
		if told == nil {
			return 0, nil
		}
		told(o)
		return o.Len(), nil
	})
	if err != nil {
		t.Fatalf("PurgeCrawl: %v", err)
	}
	if err := s.AckCrawlEnd(t.Context(), crawlID(crawl), 0); err != nil {
		t.Fatalf("Told: %v", err)
	}
	return n
}

func stopped(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 1), crawlPut("d", "http://a.test/1", 1),
		docindex.Put{URL: []byte("http://b.test/"), Crawl: []byte("c")})
	if n := stopCrawl(t, s, "c", nil); n != 1 {
		t.Errorf("%d purged; want 1", n)
	}
	if n := stopCrawl(t, s, "c", nil); n != 0 {
		t.Errorf("%d purged again; want 0", n)
	}
	if n := stopCrawl(t, s, "nobody's", nil); n != 0 {
		t.Errorf("%d purged of nothing", n)
	}
	res := put(t, s, crawlPut("c", "http://a.test/1", 1), crawlPut("c", "http://a.test/2", 1),
		crawlPut("nobody's", "http://a.test/", 1), crawlPut("d", "http://a.test/2", 1))
	if res.New != 1 || res.Dropped != 3 || res.Known != 0 {
		t.Errorf("put: %+v; want 1 new, 3 dropped", res)
	}
	wantStates(t, s, 3, 0, 1)
	if n := s.Stats().Outcomes[docindex.Stopped]; n != 1 {
		t.Errorf("%d outcomes are stopped; want 1", n)
	}
	b := take(t, s, 10)
	if b.Len() != 3 {
		t.Errorf("candidates are %q; want those of others", texts(b))
	}
	if v := pendingReport(t, s, "", 9, nil); v.Count != 1 || v.Total != 2 {
		t.Errorf("survey is %+v; want crawl d", v)
	}
}

func purgeMany(t *testing.T, s docindex.Store) {
	for i := range 50 {
		var puts []docindex.Put
		for j := range 100 {
			puts = append(puts, crawlPut("c", fmt.Sprintf("http://h%d.test/%d", j, i), int32(j%7)))
		}
		put(t, s, puts...)
	}
	if n := stopCrawl(t, s, "c", nil); n != 5000 {
		t.Errorf("%d purged; want 5000", n)
	}
	wantStates(t, s, 0, 0, 5000)
	wantPendingReport(t, pendingReport(t, s, "", 9, nil), docindex.PendingReport{})
}

func purgeAtSlots(t *testing.T, s docindex.Store) {
	for i := range 2500 {
		put(t, s, crawlPut("c", fmt.Sprintf("http://h%d.test/", i), 0))
	}
	put(t, s, crawlPut("d", "http://other.test/", 0))
	if b := take(t, s, 3000); b.Len() != 2501 {
		t.Fatalf("%d candidates", b.Len())
	}
	put(t, s, crawlPut("c", "http://late.test/", 0))
	told := map[string]bool{}
	n := stopCrawl(t, s, "c", func(o *docindex.Outcomes) {
		for i := range o.Len() {
			out := o.At(i)
			told[string(out.DocID)] = true
			if out.Kind != docindex.Stopped || len(out.DocID) == 0 {
				t.Fatalf("told is %+v", out)
			}
		}
		report(t, s, o)
	})
	if n != 2501 || len(told) != 2500 {
		t.Errorf("%d purged, %d told; want 2501, 2500 of them at the slots", n, len(told))
	}
	if n := stopCrawl(t, s, "c", nil); n != 0 {
		t.Errorf("%d purged again; want 0", n)
	}
	wantStates(t, s, 0, 1, 2501)
	failure := errors.New("no")
	if err := s.StopCrawl(t.Context(), crawlID("d"), docindex.Expired); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PurgeCrawl(t.Context(), crawlID("d"), func(*docindex.Outcomes) (int, error) {
		return 0,
			failure
	}); !errors.Is(err, failure) {
		t.Errorf("PurgeCrawl: %v; want %v", err, failure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PurgeCrawl(ctx, crawlID("d"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("PurgeCrawl: %v; want %v", err, context.Canceled)
	}
}

// Between StopCrawl and the purge the store gives out no document of the crawl, and counts them
// all.
func stoppedStays(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://a.test/2", 0),
		crawlPut("c", "http://b.test/", 0), crawlPut("d", "http://a.test/3", 0))
	out := take(t, s, 1)
	if err := s.StopCrawl(t.Context(), crawlID("c"), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, take(t, s, 10), "http://a.test/3")
	wantURLs(t, call(t, s, any))
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: out.At(0).DocID, URL: out.At(0).URL})
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, take(t, s, 10))
	if n := stopCrawl(t, s, "c", nil); n != 3 {
		t.Errorf("%d purged; want 3", n)
	}
	wantStates(t, s, 0, 1, 3) // the returned document has ended, too
	if n, err := s.PurgeCrawl(t.Context(), crawlID("c"), nil); n != 0 || err != nil {
		t.Errorf("%d purged again, %v; want 0", n, err)
	}
}

// The next purge also counts the documents that a failed purge ended.
func purgeFails(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://b.test/2", 0))
	take(t, s, 1)
	if err := s.StopCrawl(t.Context(), crawlID("c"), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no")
	if n, err := s.PurgeCrawl(t.Context(), crawlID("c"),
		func(o *docindex.Outcomes) (int, error) { return o.Len(), failure }); n != 0 || !errors.Is(err, failure) {
		t.Errorf("PurgeCrawl: %d, %v; want %v", n, err, failure)
	}
	overdue := func(want ...docindex.CrawlEnd) {
		t.Helper()
		if got, err := s.CrawlsToEnd(t.Context(), time.Now(), 10); err != nil || !slices.Equal(got, want) {
			t.Errorf("overdue are %v, %v; want %v", got, err, want)
		}
	}
	overdue(docindex.CrawlEnd{CrawlID: crawlID("c")})
	if n := stopCrawl(t, s, "c", nil); n != 2 {
		t.Errorf("%d purged; want the two that the first try ended", n)
	}
	overdue()
}

// A purge repeats its count until AckCrawlEnd acknowledges it. Documents that end after the count
// was returned stay for the next purge.
func purgeUnacknowledged(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/1", 0), crawlPut("c", "http://b.test/2", 0))
	b := take(t, s, 1)
	if err := s.StopCrawl(t.Context(), crawlID("c"), docindex.Stopped); err != nil {
		t.Fatal(err)
	}
	purge := func(want int) {
		t.Helper()
		n, err := s.PurgeCrawl(t.Context(), crawlID("c"), func(*docindex.Outcomes) (int, error) { return 0, nil })
		if n != want || err != nil {
			t.Errorf("%d purged, %v; want %d", n, err, want)
		}
	}
	told := func() {
		t.Helper()
		if err := s.AckCrawlEnd(t.Context(), crawlID("c"), 0); err != nil {
			t.Fatal(err)
		}
	}
	purge(1)
	purge(1) // the caller did not acknowledge the count
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL})
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	told()
	purge(1) // the document that was returned after the last count
	told()
	told()
	purge(0)
}

func stoppedUpdate(t *testing.T, s docindex.Store) {
	put(t, s, crawlPut("c", "http://a.test/", 0))
	call(t, s, any)
	stopCrawl(t, s, "c", nil)
	again := crawlPut("c", "http://a.test/", 0)
	again.Update, again.Due = true, 0
	if v := add(t, s, again); v[0] != docindex.Dropped {
		t.Errorf("verdict on news is %v; want dropped", v[0])
	}
	wantStates(t, s, 0, 0, 1)
	again.Due = docindex.Never
	if v := add(t, s, again); v[0] != docindex.Changed {
		t.Errorf("verdict on its end is %v; want changed", v[0])
	}
}
