package indextest

import (
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
)

var againCases = []testCase{
	{"again: an outcome schedules anew", againSchedules},
	{"again: only what is not completed", againStrange},
	{"again: before its time and after its lease", againEarly},
	{"again: the slots' pauses bind calls", againPause},
	{"again: limit", againLimit},
}

// again completes all documents of b with outcomes that schedule them again after in.
func again(t *testing.T, s docindex.Store, b *docindex.Batch, in, pause time.Duration) {
	t.Helper()
	var o docindex.Outcomes
	for i := range b.Len() {
		c := b.At(i)
		o.Add(docindex.Outcome{
			DocID: c.DocID, URL: c.URL, Kind: docindex.Done, Status: 200, Attempts: 1,
			Pause: pause, Again: time.Now().Add(in).Unix(), Metadata: []byte(`{"k":["new"]}`),
		})
	}
	report(t, s, &o)
}

func againSchedules(t *testing.T, s docindex.Store) {
	want := docindex.Put{
		URL: []byte("http://a.example/x"), DocID: []byte("x1"), Priority: -5, Crawl: []byte("crawl"),
		Key:      []byte("key"),
		Metadata: []byte(`{"a":["longer than what comes after it"],"k":["v"]}`),
	}
	put(t, s, want)
	for range 2 {
		b := take(t, s, 10)
		wantTexts(t, b, "http://a.example/x")
		again(t, s, b, time.Minute, 0)
		wantStates(t, s, 1, 0, 0)
		want.Metadata, want.Due = []byte(`{"k":["new"]}`), time.Now().Unix()+60
		wantDocument(t, s, docindex.Document{Put: want, State: docindex.Scheduled,
			Last: docindex.LastOutcome{Known: true, Status: 200, At: wholeSecond()}})
		time.Sleep(time.Minute - time.Millisecond)
		wantTexts(t, take(t, s, 10))
		time.Sleep(time.Millisecond)
	}
	if n := s.Stats().Outcomes[docindex.Done]; n != 2 {
		t.Errorf("%d outcomes are counted as done; want 2", n)
	}
	if v := add(t, s, docindex.Put{URL: want.URL, Crawl: want.Crawl, Key: want.Key}); v[0] != docindex.Same {
		t.Errorf("put once more it is %v; want that it is known", v[0])
	}
	b := take(t, s, 10)
	wantTexts(t, b, "http://a.example/x")
	end(t, s, b)
	wantStates(t, s, 0, 0, 1)
}

// againStrange reports outcomes that the store must ignore: of completed documents, of unknown
// documents, and with another URL.
func againStrange(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://b.example/1")...)
	b := take(t, s, 1)
	end(t, s, b)
	again(t, s, b, 0, 0)
	wantStates(t, s, 1, 0, 1)
	other := take(t, s, 1)
	var o docindex.Outcomes
	due := time.Now().Unix() + 60
	o.Add(docindex.Outcome{DocID: other.At(0).DocID, URL: []byte("http://c.example/"), Again: due})
	o.Add(docindex.Outcome{DocID: []byte("none"), Again: due})
	report(t, s, &o)
	wantStates(t, s, 0, 1, 1)
	if n := s.Stats().Outcomes[docindex.Done]; n != 1 {
		t.Errorf("%d outcomes are counted; want 1", n)
	}
}

// againEarly reports outcomes of documents whose lease has ended and that nobody has leased since.
// The store must accept them.
func againEarly(t *testing.T, s docindex.Store) {
	put(t, s, urls("http://a.example/1", "http://b.example/1")...)
	b := lease(t, s, 2, time.Second)
	time.Sleep(2 * time.Second)
	wantTexts(t, take(t, s, 1), "http://a.example/1")
	again(t, s, b, time.Minute, 0) // one is in transit again, the other waits
	wantStates(t, s, 2, 0, 0)
	wantTexts(t, take(t, s, 10))
	time.Sleep(time.Minute)
	got := texts(take(t, s, 10))
	slices.Sort(got) // the store decides which host is first
	wantURLs(t, got, "http://a.example/1", "http://b.example/1")
}

func againPause(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	again(t, s, take(t, s, 1), time.Second, 20*time.Second)
	time.Sleep(20*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	wantURLs(t, call(t, s, any), "http://a.test/2", "http://a.test/1")
}

// againLimit has a queue that never reaches its limit, because none of its documents stays
// completed.
func againLimit(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1")...)
	set(t, s, docindex.SetLimit, "a.test", 1)
	for range 3 {
		b := take(t, s, 1)
		wantTexts(t, b, "http://a.test/1")
		again(t, s, b, time.Minute, 0)
		time.Sleep(time.Minute)
	}
}
