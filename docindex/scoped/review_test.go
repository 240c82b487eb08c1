package scoped

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// watched is a store that calls before at each report of outcomes, and counted once after a count.
type watched struct {
	docindex.Store
	before, counted func()
}

func (w *watched) Count(ctx context.Context, of *docindex.Scope) (docindex.Counts, error) {
	n, err := w.Store.Count(ctx, of)
	if call := w.counted; call != nil {
		w.counted = nil
		call()
	}
	return n, err
}

func (w *watched) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	w.before()
	return w.Store.Outcomes(ctx, o)
}

// TestReviewKeepsFewIDs ends many documents. The review does not keep the DOC_IDs of all.
func TestReviewKeepsFewIDs(t *testing.T) {
	w := &watched{Store: memory.New(), before: func() {}}
	s := New(w)
	var p docindex.Puts
	for i := range 5 * reviewBatch {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/", i), Crawl: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if err := s.change(t.Context(), "c", func(now *Settings) (bool, error) {
		now.Scope.Domains = []string{"other.test"}
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	most := 0
	w.before = func() { most = max(most, s.keptIDs()) }
	if _, err := s.Review(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, err := s.Crawl(t.Context(), "c")
	if err != nil || i.OutOfScope() != 5*reviewBatch {
		t.Errorf("out_of_scope is %d, %v; want %d", i.OutOfScope(), err, 5*reviewBatch)
	}
	if most > 2*reviewBatch || most < reviewBatch {
		t.Errorf("%d DOC_IDs are kept at once; want those of two batches", most)
	}
}

func (s *Store) keptIDs() int { return len(s.ends) + len(s.ended[0]) + len(s.ended[1]) }

// TestDeletedDuringReview: a crawl that is deleted while its documents are looked at has no settings.
func TestDeletedDuringReview(t *testing.T) {
	w := &watched{Store: memory.New(), before: func() {}}
	s := New(w)
	putOfC(t, s, "http://a.test/", "http://b.test/")
	change(t, s, func(now *Settings) { now.Scope.Domains = []string{"a.test"} })
	w.before = func() {
		if _, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Review(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CrawlSettings(t.Context(), 0, func(crawl string, text []byte) {
		t.Errorf("settings of %s are kept: %s", crawl, text)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedWhileCounted: a crawl that was over goes on, hands out a document and is stopped, while
// the documents of the earlier end are counted. The document that comes back ends.
func TestStoppedWhileCounted(t *testing.T) {
	w := &watched{Store: memory.New(), before: func() {}}
	s := New(w)
	now := time.Now().Unix()
	s.SetClock(func() int64 { return now })
	until := func(at int64) { change(t, s, func(is *Settings) { is.Scope.Until = time.Unix(at, 0).UTC() }) }
	taken := func() docindex.Outcome {
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 9, nil, &b); err != nil || b.Len() != 1 {
			t.Fatalf("%d candidates, %v; want one", b.Len(), err)
		}
		return docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Status: 200}
	}
	review := func() {
		if _, err := s.Review(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	putOfC(t, s, "http://a.test/")
	until(now + 10)
	first, second := taken(), docindex.Outcome{}
	now += 10
	review()
	var o docindex.Outcomes
	o.Add(first)
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	w.counted = func() {
		until(now + 1_000_000)
		putOfC(t, s, "http://b.test/")
		second = taken()
		change(t, s, func(is *Settings) { is.Stopped = true })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_ = s.reviewNow(ctx, "c") // it may have to wait for the count
	}
	now++
	review()
	o.Reset()
	o.Add(second)
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	now += longestLook
	review()
	i, err := s.Crawl(t.Context(), "c")
	if err != nil || i.Scheduled != 0 || i.Completed != 2 || i.Review {
		t.Errorf("%+v, %v; want both documents completed", i, err)
	}
}

// TestReturnedAfterTheClockWentBack: a document comes back to a stopped crawl after the clock has gone
// back by an hour. It ends at the next look.
func TestReturnedAfterTheClockWentBack(t *testing.T) {
	s := New(memory.New())
	now := time.Now().Unix()
	s.SetClock(func() int64 { return now })
	putOfC(t, s, "http://a.test/")
	var b docindex.Batch
	if err := s.Candidates(t.Context(), 9, nil, &b); err != nil || b.Len() != 1 {
		t.Fatalf("%d candidates, %v; want one", b.Len(), err)
	}
	change(t, s, func(is *Settings) { is.Stopped = true })
	review := func() {
		t.Helper()
		if _, err := s.Review(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	review()
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL})
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	now -= 3600
	review()
	if i, err := s.Crawl(t.Context(), "c"); err != nil || i.Scheduled != 0 || i.Completed != 1 {
		t.Errorf("%+v, %v; want the document completed", i, err)
	}
}

// TestAwayIsBounded: all crawls together keep maxAway DOC_IDs of documents in transit, each crawl those of
// all its documents or none.
func TestAwayIsBounded(t *testing.T) {
	s := New(memory.New())
	ids := make([]string, maxAway+1)
	for _, step := range []struct {
		crawl      string
		some, want int // DOC_IDs of the crawl, and of those that are kept
	}{{"a", maxAway + 1, 0}, {"a", 10, 10}, {"b", maxAway - 9, 0}, {"b", maxAway - 10, maxAway - 10}, {"c", 5, 0},
		{"a", maxAway, 0}, {"b", 3, 3}, {"c", 5, 5}, {"a", maxAway - 8, maxAway - 8}} {
		s.awaitReturn(step.crawl, true, ids[:step.some], 0)
		if away := s.returning[step.crawl].away; len(away) != step.want || step.want == 0 && away != nil {
			t.Errorf("%+v: %d are kept", step, len(away))
		}
	}
	s.awaitReturn("a", false, nil, 0)
	if len(s.returning) != 2 {
		t.Errorf("%d crawls are looked at again; want b and c", len(s.returning))
	}
}

// TestMoreComeBackThanAreKept: documents that were in transit when the scope changed come back, and there
// is no room for all their DOC_IDs. All end, those first that the slots give back at once.
func TestMoreComeBackThanAreKept(t *testing.T) {
	for _, is := range []struct{ documents, ofOthers int }{{maxAway + 10, 0}, {3, maxAway}} {
		s := New(memory.New())
		now := time.Now().Unix()
		s.SetClock(func() int64 { return now })
		taken := takenOfC(t, s, is.documents)
		if is.ofOthers > 0 {
			s.awaitReturn("other", true, make([]string, is.ofOthers), 0)
		}
		change(t, s, func(to *Settings) { to.Scope.Domains = []string{"other.test"} })
		review := func(later, completed int) {
			t.Helper()
			now += int64(later)
			if _, err := s.Review(t.Context()); err != nil {
				t.Fatal(err)
			}
			i, err := s.Crawl(t.Context(), "c")
			if err != nil || i.Scheduled != 0 || i.Completed != uint64(completed) || i.Review {
				t.Errorf("%+v: %+v, %v; want %d completed and none scheduled", is, i, err, completed)
			}
		}
		review(0, 0)
		var slots, spider docindex.Outcomes
		for i, o := range taken {
			if i < is.documents-1 {
				slots.Add(o)
			} else {
				spider.Add(o)
			}
		}
		for _, back := range []*docindex.Outcomes{&slots, &spider} {
			if err := s.Return(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			done := is.documents
			if back == &slots {
				done--
			}
			review(longestLook, done)
			if kept := len(s.returning["c"].away); kept != is.documents-done {
				t.Errorf("%+v: %d DOC_IDs are kept after %d have ended", is, kept, done)
			}
		}
	}
}

// TestStoppedKeepsNoIDs: a stopped crawl with a document in transit is looked at again as a whole.
func TestStoppedKeepsNoIDs(t *testing.T) {
	s := New(memory.New())
	takenOfC(t, s, 1)
	change(t, s, func(is *Settings) { is.Stopped = true })
	if _, err := s.Review(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, is := s.returning["c"]; !is || r.away != nil {
		t.Errorf("%v, %+v; want that the crawl is looked at again, and no DOC_ID", is, r)
	}
}

// takenOfC puts some documents of the crawl c, each on a host of its own, and takes them all.
func takenOfC(t *testing.T, s *Store, some int) (taken []docindex.Outcome) {
	t.Helper()
	var urls []string
	for i := range some {
		urls = append(urls, fmt.Sprintf("http://h%d.test/", i))
	}
	putOfC(t, s, urls...)
	var b docindex.Batch
	if err := s.Candidates(t.Context(), some, nil, &b); err != nil || b.Len() != some {
		t.Fatalf("%d candidates, %v; want %d", b.Len(), err, some)
	}
	for i := range b.Len() {
		taken = append(taken, docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200})
	}
	return taken
}

// TestLongLooksAreSeldom: a look at all documents of a crawl that took long is not repeated soon. One that
// took no time is repeated after a minute at most.
func TestLongLooksAreSeldom(t *testing.T) {
	s := New(memory.New())
	s.SetClock(func() int64 { return 1000 })
	for _, look := range []struct{ took, want int64 }{{0, 1}, {0, 2}, {30, 600}, {0, 60}, {0, 60}, {2, 60}, {4, 80}} {
		s.awaitReturn("a", true, nil, look.took)
		if got := s.returning["a"].at - 1000; got != look.want {
			t.Errorf("%+v: looks again after %d s", look, got)
		}
	}
}

func putOfC(t *testing.T, s *Store, urls ...string) {
	t.Helper()
	var p docindex.Puts
	for _, url := range urls {
		if err := p.Add(docindex.Put{URL: []byte(url), Crawl: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, s *Store, do func(*Settings)) {
	t.Helper()
	err := s.change(t.Context(), "c", func(now *Settings) (bool, error) {
		do(now)
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDomainsListedAgain: the list of a queue fails while URLs of it are purged. It is made anew, and
// whoever puts is told to try again if it fails each time.
func TestDomainsListedAgain(t *testing.T) {
	for failures, want := range []error{nil, nil, nil, docindex.ErrUnavailable} {
		w := &failing{Store: memory.New()}
		s := New(w)
		change(t, s, func(is *Settings) { is.Scope.MaxPagesDomain = 2 })
		keyed := func(path string) *docindex.Puts {
			var p docindex.Puts
			put := docindex.Put{URL: []byte("http://a.test/" + path), Crawl: []byte("c"), Key: []byte("a.test:80")}
			if err := p.Add(put); err != nil {
				t.Fatal(err)
			}
			return &p
		}
		if _, err := s.Put(t.Context(), keyed("1")); err != nil {
			t.Fatal(err)
		}
		s.recount([]byte("c"))
		w.failures = failures
		if _, err := s.Put(t.Context(), keyed("2")); !errors.Is(err, want) {
			t.Errorf("after %d failures the put says %v; want %v", failures, err, want)
		}
		if r, err := s.Put(t.Context(), keyed("3")); want == nil && (err != nil || r.OutOfScope != 1) {
			t.Errorf("after %d failures the third URL of the domain is %+v, %v; want it outside", failures, r, err)
		}
	}
}

// failing is a store whose next lists fail when they have told of a document.
type failing struct {
	docindex.Store
	failures int
}

func (f *failing) List(ctx context.Context, of docindex.Scope, visit func(*docindex.Document) bool) error {
	err := f.Store.List(ctx, of, visit)
	if f.failures > 0 {
		f.failures--
		return docindex.ErrListAgain
	}
	return err
}
