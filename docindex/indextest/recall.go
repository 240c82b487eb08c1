package indextest

import (
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

var recallCases = []testCase{
	{"recall: settings", recallSettings},
	{"recall: forgotten", recallForgotten},
	{"doors: the slots' gap holds after calls", gapAfterCalls},
	{"doors: a host's gap binds calls", gapOfHost},
	{"doors: a limit binds the slots", limitAtSlots},
	{"doors: a dot at the end", dotAtTheEnd},
	{"outcome of a document that was rescheduled", rescheduled},
}

// recalled records the DOC_IDs of recalled documents. The returned function returns the URLs of
// those that are in a batch, and forgets them.
func recalled(s docindex.Store) func(b *docindex.Batch) []string {
	var ids []string
	s.OnRecall(func(o *docindex.Outcomes) {
		for i := range o.Len() {
			ids = append(ids, string(o.At(i).DocID))
		}
	})
	return func(b *docindex.Batch) (urls []string) {
		for i := range b.Len() {
			if slices.Contains(ids, string(b.At(i).DocID)) {
				urls = append(urls, string(b.At(i).URL))
			}
		}
		if len(urls) != len(ids) {
			urls = append(urls, "and strange ones")
		}
		ids = nil
		slices.Sort(urls)
		return urls
	}
}

func recallSettings(t *testing.T, s docindex.Store) {
	got := recalled(s)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	b := take(t, s, 10)
	set(t, s, docindex.SetBlock, "a.test", 1<<40)
	wantURLs(t, got(b), "http://a.test/1", "http://a.test/2")
	set(t, s, docindex.SetDelay, "b.test", 60)
	wantURLs(t, got(b), "http://b.test/1")
	set(t, s, docindex.SetDelay, "", 60)
	wantURLs(t, got(b), "http://a.test/1", "http://a.test/2", "http://b.test/1")
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
	}
	if err := s.Return(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	set(t, s, docindex.SetLimit, "a.test", 5)
	wantURLs(t, got(b)) // nothing is at the slots any more
	time.Sleep(time.Hour)
	wantTexts(t, take(t, s, 10), "http://b.test/1")
}

func recallForgotten(t *testing.T, s docindex.Store) {
	got := recalled(s)
	add(t, s, urls("http://a.test/1", "http://b.test/1", "http://b.test/2", "http://c.test/1")...)
	b := take(t, s, 10)
	if _, err := s.Delete(t.Context(), docindex.Scope{Key: []byte("b.test")}); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, got(b), "http://b.test/1", "http://b.test/2")
	time.Sleep(time.Minute)
	if _, err := s.Purge(t.Context(), docindex.Scope{Key: []byte("a.test")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, got(b), "http://a.test/1")
	if _, err := s.Delete(t.Context(), docindex.Scope{}); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, got(b), "http://c.test/1")
}

func gapAfterCalls(t *testing.T, s docindex.Store) {
	s.SetSlotGap(4 * time.Second)
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Minute}), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(4*time.Second - 2*time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(2 * time.Millisecond)
	wantTexts(t, take(t, s, 10), "http://a.test/2")
}

func gapOfHost(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	add(t, s, docindex.Put{URL: []byte("http://a.test/4"), Crawl: []byte("c")})
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, Pause: 5 * time.Second, Gap: 5 * time.Second})
	report(t, s, &o)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: time.Millisecond}
	var all []string
	for range 2 { // of the two crawls, in any order
		time.Sleep(5*time.Second - 2*time.Millisecond)
		wantURLs(t, call(t, s, one))
		time.Sleep(2 * time.Millisecond)
		got := call(t, s, one)
		ended(t, s, got...)
		all = append(all, got...)
	}
	slices.Sort(all)
	wantURLs(t, all, "http://a.test/2", "http://a.test/4")
}

func limitAtSlots(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetLimit, "a.test", 2)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	b := take(t, s, 10)
	wantTexts(t, b, "http://a.test/1", "http://a.test/2")
	end(t, s, b)
	wantTexts(t, take(t, s, 10))
}

func dotAtTheEnd(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test./2")...)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, MaxQueues: 1, Lease: time.Minute}), "http://a.test/1")
	wantTexts(t, take(t, s, 10))
}

func rescheduled(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1")...)
	b := take(t, s, 1)
	at := time.Now().Add(100 * time.Second)
	add(t, s, docindex.Put{URL: []byte("http://a.test/1"), Update: true, Due: at.Unix()})
	end(t, s, b)
	wantStates(t, s, 1, 0, 0)
	time.Sleep(101 * time.Second)
	wantTexts(t, take(t, s, 1), "http://a.test/1")
}
