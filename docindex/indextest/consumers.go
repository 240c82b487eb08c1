package indextest

import (
	"fmt"
	"testing"
	"time"

	"urlserver/docindex"
)

var consumerCases = []testCase{
	{"doors: a host goes out at one", consumerHost},
	{"doors: a host is lent or here", consumerRemote},
	{"doors: queues of many hosts", consumerMixed},
	{"doors: settings bind the slots", consumerSettings},
	{"doors: the slots' pauses bind calls", consumerPause},
	{"doors: what robots.txt teaches the slots binds calls", consumerRobotsPause},
	{"doors: what the slots return", consumerReturn},
	{"doors: crowded queue of a busy host", consumerCrowd},
}

func consumerHost(t *testing.T, s docindex.Store) {
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

// consumerRemote lets another daemon lease documents. It gets documents only of hosts that nobody
// works on here. Those hosts then wait until it has finished and a gap has passed.
func consumerRemote(t *testing.T, s docindex.Store) {
	s.SetSlotGap(5 * time.Second)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://b.test/3")...)
	here := take(t, s, 1)
	wantTexts(t, here, "http://a.test/1")
	remote := lease(t, s, 2, time.Minute)
	wantTexts(t, remote, "http://b.test/1", "http://b.test/2")
	wantTexts(t, take(t, s, 10), "http://a.test/2")
	wantURLs(t, call(t, s, any))
	end(t, s, here)
	wantTexts(t, lease(t, s, 1, time.Second), "http://b.test/3") // a.test/2 is still here
	end(t, s, remote)
	time.Sleep(time.Second) // until the second lease ends
	wantTexts(t, take(t, s, 10))
	time.Sleep(5*time.Second - time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(time.Millisecond)
	wantTexts(t, take(t, s, 10), "http://b.test/3")
	wantTexts(t, lease(t, s, 10, time.Minute))
}

func consumerMixed(t *testing.T, s docindex.Store) {
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

func consumerSettings(t *testing.T, s docindex.Store) {
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

func consumerPause(t *testing.T, s docindex.Store) {
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

func consumerRobotsPause(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://b.test/1")...)
	var o docindex.Outcomes
	o.Add(docindex.Outcome{URL: []byte("http://a.test/"), Pause: 20 * time.Second, Gap: 20 * time.Second})
	o.Add(docindex.Outcome{URL: []byte("http://never.put.test/"), Pause: 20 * time.Second})
	if err := s.Pause(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	wantURLs(t, call(t, s, any), "http://b.test/1")
	time.Sleep(20*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	wantURLs(t, call(t, s, any), "http://a.test/1")
}

func consumerReturn(t *testing.T, s docindex.Store) {
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
	if err := s.Return(t.Context(), &o); err != nil { // the slots no longer have it
		t.Fatal(err)
	}
	wantStates(t, s, 0, 3, 0)
}

// consumerCrowd fills a queue with URLs of a host that the slots work on. Other hosts' URLs in that
// queue may wait for a while, but calls must not wait for the queue.
func consumerCrowd(t *testing.T, s docindex.Store) {
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
