package indextest

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
)

var doorCases = []testCase{
	{"doors: a host goes out at one", doorHost},
	{"doors: a host is lent or here", doorLent},
	{"doors: queues of many hosts", doorMixed},
	{"doors: settings bind the slots", doorSettings},
	{"doors: the slots' pauses bind calls", doorPause},
	{"doors: what the slots return", doorReturn},
	{"doors: crowded queue of a busy host", doorCrowd},
}

func doorHost(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2")...)
	add(t, s, docindex.Put{URL: []byte("http://a.test/3"), Crawl: []byte("c")})
	b := take(t, s, 1)
	wantTexts(t, b, "http://a.test/1")
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Minute}), "http://b.test/1")
	wantTexts(t, take(t, s, 10), "http://a.test/3", "http://a.test/2")
	time.Sleep(time.Hour) // a minute of which b.test is at the calls
	wantTexts(t, take(t, s, 10), "http://b.test/1", "http://b.test/2")
	end(t, s, b)
	time.Sleep(time.Hour)
	wantURLs(t, call(t, s, any))
	wantStates(t, s, 0, 4, 1)
}

// doorLent has another daemon take documents: of hosts that nobody works on here, which wait then
// until it is through and a gap has passed.
func doorLent(t *testing.T, s docindex.Store) {
	s.SetSlotGap(5 * time.Second)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://b.test/3")...)
	here := take(t, s, 1)
	wantTexts(t, here, "http://a.test/1")
	lent := lease(t, s, 2, time.Minute)
	wantTexts(t, lent, "http://b.test/1", "http://b.test/2")
	wantTexts(t, take(t, s, 10), "http://a.test/2")
	wantURLs(t, call(t, s, any))
	end(t, s, here)
	wantTexts(t, lease(t, s, 1, time.Second), "http://b.test/3") // a.test/2 is still here
	end(t, s, lent)
	time.Sleep(time.Second) // the other lease ends
	wantTexts(t, take(t, s, 10))
	time.Sleep(5*time.Second - time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(time.Millisecond)
	wantTexts(t, take(t, s, 10), "http://b.test/3")
	wantTexts(t, lease(t, s, 10, time.Minute))
}

func doorMixed(t *testing.T, s docindex.Store) {
	var puts []docindex.Put
	for _, text := range []string{"http://a.test/1", "http://b.test/1", "http://a.test/2", "http://b.test/2"} {
		puts = append(puts, docindex.Put{URL: []byte(text), Key: []byte("both")})
	}
	add(t, s, puts...)
	set(t, s, docindex.SetDelay, "", 0)
	wantTexts(t, take(t, s, 1), "http://a.test/1")
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 2, Lease: time.Minute}), "http://b.test/1")
	wantTexts(t, take(t, s, 10, "a.test"))
	wantTexts(t, take(t, s, 10), "http://a.test/2")
	wantURLs(t, call(t, s, any), "http://b.test/2")
}

func doorSettings(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2")...)
	set(t, s, docindex.SetDelay, "a.test", 10)
	b := take(t, s, 10)
	wantTexts(t, b, "http://a.test/1", "http://b.test/1", "http://b.test/2")
	time.Sleep(time.Hour)
	wantTexts(t, take(t, s, 10)) // one of a.test at a time
	end(t, s, b)
	time.Sleep(10*time.Second - time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(time.Millisecond)
	wantTexts(t, take(t, s, 10), "http://a.test/2")
}

func doorPause(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	b := take(t, s, 1)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, Pause: 20 * time.Second})
	report(t, s, &o)
	time.Sleep(20*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	wantURLs(t, call(t, s, any), "http://a.test/2")
}

func doorReturn(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	b := lease(t, s, 10, time.Minute)
	var o docindex.Outcomes
	for i := range b.Len() {
		o.Add(docindex.Outcome{DocID: b.At(i).DocID, URL: b.At(i).URL})
	}
	for range 2 { // a second time changes nothing
		if err := s.Return(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
		wantStates(t, s, 3, 0, 0)
	}
	time.Sleep(time.Second)
	wantURLs(t, call(t, s, any), "http://b.test/1", "http://a.test/1", "http://a.test/2")
	if err := s.Return(t.Context(), &o); err != nil { // it is not the slots' any more
		t.Fatal(err)
	}
	wantStates(t, s, 0, 3, 0)
}

// doorCrowd has a queue full of URLs of a host that is worked on at the slots: others in the queue
// may wait for a while, but nobody waits for the queue.
func doorCrowd(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://busy.test/")...)
	b := take(t, s, 1)
	var puts []docindex.Put
	for i := range 1000 {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://busy.test/%d", i), Key: []byte("crowd")})
	}
	add(t, s, puts...)
	add(t, s, urls("http://free.test/")...)
	wantURLs(t, call(t, s, any), "http://free.test/")
	end(t, s, b)
	time.Sleep(2 * time.Second)
	if got := call(t, s, any); len(got) != 1000 {
		t.Errorf("%d URLs are served when their host is free; want 1000", len(got))
	}
}
