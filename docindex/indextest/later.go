package indextest

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
)

// DueLater tests that Count tells how many documents are due later, in all and of a crawl. The
// store is empty.
func DueLater(t *testing.T, s docindex.Store) {
	want := func(when string, all, crawl docindex.Counts) {
		t.Helper()
		wantLater(t, s, when, nil, all)
		wantLater(t, s, when, &docindex.Scope{Crawl: []byte("c")}, crawl)
	}
	put := func(due int64, update bool, urls ...string) {
		t.Helper()
		putDue(t, s, due, update, urls...)
	}
	later := time.Now().Unix() + 3600
	put(0, false, "http://a.test/now", "chttp://a.test/now")
	put(later, false, "http://a.test/1", "http://b.test/2", "chttp://a.test/3", "chttp://b.test/4")
	put(later+200_000, false, "chttp://a.test/5")
	want("put", docindex.Counts{Scheduled: 7, Later: 5}, docindex.Counts{Scheduled: 4, Later: 3})
	put(later+5, true, "http://a.test/1")
	put(docindex.Now, true, "chttp://b.test/4")
	want("updated", docindex.Counts{Scheduled: 7, Later: 4}, docindex.Counts{Scheduled: 4, Later: 2})
	put(docindex.Never, true, "chttp://a.test/5")
	want("completed", docindex.Counts{Scheduled: 6, Later: 3, Completed: 1},
		docindex.Counts{Scheduled: 3, Later: 1, Completed: 1})

	var b docindex.Batch
	for range 50 { // a queue gives the slots one document after the other
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil {
			t.Fatal(err)
		}
		if b.Len() == 3 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if b.Len() != 3 {
		t.Fatalf("%d documents are due; want 3", b.Len())
	}
	want("handed out", docindex.Counts{Scheduled: 3, InTransit: 3, Later: 3, Completed: 1},
		docindex.Counts{Scheduled: 1, InTransit: 2, Later: 1, Completed: 1})
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL, Status: 200, Again: later + 10})
	}
	if err := s.Outcomes(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	want("to be fetched again", docindex.Counts{Scheduled: 6, Later: 6, Completed: 1},
		docindex.Counts{Scheduled: 3, Later: 3, Completed: 1})
	if n, err := s.Delete(t.Context(), docindex.Scope{Crawl: []byte("c")}); err != nil || n != 4 {
		t.Fatal(fmt.Sprint("Delete: ", n), err)
	}
	want("a crawl was deleted", docindex.Counts{Scheduled: 3, Later: 3}, docindex.Counts{})
	n, err := s.Purge(t.Context(), docindex.Scope{Key: []byte("a.test")}, time.Now().Add(time.Hour))
	if err != nil || n != 2 {
		t.Fatal(fmt.Sprint("Purge: ", n), err)
	}
	want("a queue was purged", docindex.Counts{Scheduled: 1, Later: 1}, docindex.Counts{})
	put(docindex.Never-1, false, "http://a.test/6")
	want("the latest due time", docindex.Counts{Scheduled: 2, Later: 2}, docindex.Counts{})
	put(docindex.Now, true, "http://a.test/6")
	want("brought forward from it", docindex.Counts{Scheduled: 2, Later: 1}, docindex.Counts{})
}

// wantLater compares what a store counts, without queues.
func wantLater(t *testing.T, s docindex.Store, when string, of *docindex.Scope, want docindex.Counts) {
	t.Helper()
	got := Count(t, s, of)
	got.Queues, got.Active = 0, 0
	if got != want {
		t.Errorf("%s: %+v; want %+v", when, got, want)
	}
}

// putDue puts URLs that are due then. One that begins with "c" is of crawl c.
func putDue(t *testing.T, s docindex.Store, due int64, update bool, urls ...string) {
	t.Helper()
	var p docindex.Puts
	for _, u := range urls {
		crawl := []byte(nil)
		if u[0] == 'c' {
			crawl, u = []byte("c"), u[1:]
		}
		if err := p.Add(docindex.Put{URL: []byte(u), Crawl: crawl, Due: due, Update: update}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}
