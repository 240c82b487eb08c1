package indextest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

var callCases = []testCase{
	{"calls: queues take turns", callTurns},
	{"calls: due time, priority, arrival", callOrder},
	{"calls: delay between servings", callDelay},
	{"calls: a delay is never short", callDelayWhole},
	{"calls: default delay", callDefaultDelay},
	{"calls: URLs in transit a queue", callPerQueue},
	{"calls: leases end to the millisecond", callLease},
	{"calls: many leases end at once", callManyLeases},
	{"calls: one queue by its key", callKey},
	{"calls: one crawl", callCrawl},
	{"calls: block", callBlock},
	{"calls: limit", callLimit},
	{"calls: set before the first URL", callPreset},
	{"calls: passive", callPassive},
	{"calls: many URLs in portions", callPortions},
	{"calls: client goes away", callBroken},
	{"calls: hosts that back off", callBackoff},
	{"calls: Retry-After holds for its host alone", callRetryAfter},
	{"news of known URLs", news},
	{"URLs as they are", exact},
	{"look", look},
	{"delete", deletes},
	{"purge", purges},
	{"purge ends with its context", purgeBroken},
	{"queues come and go during calls", reuse},
}

// add puts URLs as URL Frontier clients do, and returns a verdict for each.
func add(t *testing.T, s docindex.Store, puts ...docindex.Put) (verdicts []docindex.Verdict) {
	t.Helper()
	var p docindex.Puts
	for _, one := range puts {
		if err := p.AddExact(one, docindex.HostOf(one.URL)); err != nil {
			t.Fatalf("AddExact(%s): %v", one.URL, err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatalf("Put: %v", err)
	}
	for i := range puts {
		verdicts = append(verdicts, p.Verdict(i))
	}
	return verdicts
}

// ended reports as completed URLs of the default crawl, which are in the queues of their hosts.
func ended(t *testing.T, s docindex.Store, texts ...string) {
	t.Helper()
	for _, u := range urls(texts...) {
		u.Update, u.Due = true, docindex.Never
		add(t, s, u)
	}
}

// any requests URLs of all queues of all crawls, with a lease of a minute.
var any = docindex.Request{AnyCrawl: true, Lease: time.Minute}

// ofA is like any, but for the queue a.test alone.
var ofA = docindex.Request{Scope: docindex.Scope{Key: []byte("a.test")}, AnyCrawl: true, Lease: time.Minute}

// call serves a request and returns the URLs.
func call(t *testing.T, s docindex.Store, r docindex.Request) (all []string) {
	t.Helper()
	err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			all = append(all, string(h.At(i).URL))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Serve: %v", err)
	}
	return all
}

func wantURLs(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("served are\n%q; want\n%q", got, want)
	}
}

// set changes a setting of a queue in the default crawl. An empty key stands for the default.
func set(t *testing.T, s docindex.Store, which docindex.SettingKind, key string, value uint64) {
	t.Helper()
	err := s.Set(t.Context(), docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(key)}, Value: value})
	if err != nil {
		t.Fatalf("Set(%v, %s, %d): %v", which, key, value, err)
	}
}

func callTurns(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://c.test/1", "http://c.test/2")...)
	two := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 2, Lease: time.Minute}
	wantURLs(t, call(t, s, two), "http://a.test/1", "http://b.test/1")
	wantURLs(t, call(t, s, two), "http://c.test/1")
	wantURLs(t, call(t, s, two))
	time.Sleep(time.Second)
	wantURLs(t, call(t, s, two)) // each has one in transit
	ended(t, s, "http://c.test/1", "http://a.test/1")
	wantURLs(t, call(t, s, two), "http://c.test/2", "http://a.test/2")
}

func callOrder(t *testing.T, s docindex.Store) {
	now := time.Now().Unix()
	at := func(path string, due int64, priority int32) docindex.Put {
		return docindex.Put{URL: []byte("http://a.test/" + path), Due: due, Priority: priority}
	}
	add(t, s, at("late", now+1, 9), at("now", now, 0), at("first", now-5, -1), at("now2", now, 0),
		at("high", now, 3), at("future", now+60, 0))
	time.Sleep(time.Second)
	wantURLs(t, call(t, s, any), "http://a.test/first", "http://a.test/high", "http://a.test/now",
		"http://a.test/now2", "http://a.test/late")
	time.Sleep(59*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	if got := call(t, s, any); len(got) == 0 || !slices.Contains(got, "http://a.test/future") {
		t.Errorf("served at its due time are %q; want http://a.test/future among them", got)
	}
}

func callDelay(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	set(t, s, docindex.SetDelay, "a.test", 5)
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(5*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, one))
	time.Sleep(time.Millisecond)
	wantURLs(t, call(t, s, one), "http://a.test/2")
	ended(t, s, "http://a.test/2")
	set(t, s, docindex.SetDelay, "a.test", 0)
	wantURLs(t, call(t, s, one), "http://a.test/3")
	ended(t, s, "http://a.test/3")
	wantURLs(t, call(t, s, one), "http://a.test/4")
}

func callDelayWhole(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	time.Sleep(900 * time.Microsecond)
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(time.Second - 800*time.Microsecond)
	wantURLs(t, call(t, s, one))
	time.Sleep(2 * time.Millisecond)
	wantURLs(t, call(t, s, one), "http://a.test/2")
}

func callDefaultDelay(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1", "http://b.test/2")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 3, MaxQueues: 1, Lease: time.Hour}
	set(t, s, docindex.SetDelay, "b.test", 0)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}),
		"http://a.test/1", "http://b.test/1")
	set(t, s, docindex.SetDelay, "", 10)
	wantURLs(t, call(t, s, one), "http://b.test/2")
	time.Sleep(9 * time.Second)
	wantURLs(t, call(t, s, one))
	set(t, s, docindex.SetDelay, "", 2)
	wantURLs(t, call(t, s, one), "http://a.test/2", "http://a.test/3")
}

func callPerQueue(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	var puts []string
	for i := range 10 {
		puts = append(puts, fmt.Sprintf("http://a.test/%d", i))
	}
	add(t, s, urls(puts...)...)
	most := func(n uint32) docindex.Request {
		return docindex.Request{AnyCrawl: true, PerQueue: n, Lease: time.Hour}
	}
	wantURLs(t, call(t, s, most(2)), puts[:2]...)
	wantURLs(t, call(t, s, most(1)))
	wantURLs(t, call(t, s, most(2)))
	wantURLs(t, call(t, s, most(3)), puts[2])
	wantURLs(t, call(t, s, most(3)))
	wantURLs(t, call(t, s, most(2)))
	ended(t, s, puts[0], puts[1])
	wantURLs(t, call(t, s, most(2)), puts[3])
	wantURLs(t, call(t, s, most(1<<31)), puts[4:]...)
}

// callManyLeases has more leases end at one moment than a store ends under one lock. Stats and Count
// count none of them.
func callManyLeases(t *testing.T, s docindex.Store) {
	const docs = 2500
	var puts []docindex.Put
	for i := range docs {
		puts = append(puts, docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/%d", i%100, i)})
	}
	add(t, s, puts...)
	for range 2 {
		if got := call(t, s, any); len(got) != docs {
			t.Fatalf("%d URLs are served; want %d", len(got), docs)
		}
		wantStates(t, s, 0, docs, 0)
		time.Sleep(time.Minute)
		wantStates(t, s, docs, 0, 0)
		if n := Count(t, s, nil); n.InTransit != 0 || n.Scheduled != docs {
			t.Errorf("%+v; want %d scheduled and none in transit", n, docs)
		}
	}
}

func callLease(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1")...)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, Lease: 30 * time.Second}), "http://a.test/1")
	wantStates(t, s, 0, 1, 0)
	time.Sleep(30*time.Second - time.Millisecond)
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	wantStates(t, s, 1, 0, 0)
	wantURLs(t, call(t, s, any), "http://a.test/1")
}

func callKey(t *testing.T, s docindex.Store) {
	u := []byte("http://a.test/1")
	add(t, s, docindex.Put{URL: u, Key: []byte("k"), Crawl: []byte("c")},
		docindex.Put{URL: u, Key: []byte("k"), Crawl: []byte("d")},
		docindex.Put{URL: u, Key: []byte("l"), Crawl: []byte("c")})
	in := func(crawl, key string) docindex.Request {
		return docindex.Request{Scope: docindex.Scope{Crawl: []byte(crawl), Key: []byte(key)}, Lease: time.Minute}
	}
	wantURLs(t, call(t, s, in("c", "m")))
	wantURLs(t, call(t, s, in("", "k")))
	wantURLs(t, call(t, s, in("c", "k")), "http://a.test/1")
	wantURLs(t, call(t, s, in("c", "k")))
	all := in("", "k")
	all.AnyCrawl = true
	wantURLs(t, call(t, s, all), "http://a.test/1")
	wantURLs(t, call(t, s, all))
}

func callCrawl(t *testing.T, s docindex.Store) {
	for _, c := range []string{"", "c", "d"} {
		add(t, s, docindex.Put{URL: []byte("http://a.test/" + c), Crawl: []byte(c)},
			docindex.Put{URL: []byte("http://b.test/" + c), Crawl: []byte(c)})
	}
	in := func(crawl string) docindex.Request {
		return docindex.Request{Scope: docindex.Scope{Crawl: []byte(crawl)}, Lease: time.Minute}
	}
	wantURLs(t, call(t, s, in("none")))
	wantURLs(t, call(t, s, in("c")), "http://a.test/c", "http://b.test/c")
	wantURLs(t, call(t, s, in("")), "http://a.test/", "http://b.test/")
	if got := call(t, s, any); len(got) != 2 {
		t.Errorf("all crawls serve %q; want the two URLs of d", got)
	}
	got := CrawlsOf(t, s)
	slices.Sort(got)
	wantURLs(t, got, "", "c", "d")
}

func callBlock(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	set(t, s, docindex.SetBlock, "a.test", uint64(time.Now().Unix()+10))
	wantURLs(t, call(t, s, any))
	wantTexts(t, take(t, s, 10))
	time.Sleep(11*time.Second - time.Millisecond) // the tenth second, too
	wantURLs(t, call(t, s, any))
	time.Sleep(time.Millisecond)
	wantURLs(t, call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: 0}), "http://a.test/1")
	set(t, s, docindex.SetBlock, "a.test", 1<<63)
	time.Sleep(1000 * time.Hour)
	wantURLs(t, call(t, s, any))
	set(t, s, docindex.SetBlock, "a.test", 0)
	wantURLs(t, call(t, s, any), "http://a.test/1", "http://a.test/2")
}

func callLimit(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	set(t, s, docindex.SetLimit, "a.test", 1)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Second}
	wantURLs(t, call(t, s, one), "http://a.test/1")
	time.Sleep(time.Second) // a lease that ends completes nothing
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(time.Minute)
	wantURLs(t, call(t, s, one))
	wantTexts(t, take(t, s, 1))
	if v := add(t, s, urls("http://a.test/4")...); v[0] != docindex.New {
		t.Errorf("a put into a queue at its limit is %v; want new", v)
	}
	set(t, s, docindex.SetLimit, "a.test", 0)
	wantURLs(t, call(t, s, one), "http://a.test/2")
	ended(t, s, "http://a.test/2")
	set(t, s, docindex.SetLimit, "a.test", 2)
	again := docindex.Put{URL: []byte("http://a.test/1"), Update: true} // no longer completed
	add(t, s, again)
	time.Sleep(time.Minute)
	wantURLs(t, call(t, s, one), "http://a.test/3")
}

func callPreset(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "a.test", 7)
	set(t, s, docindex.SetLimit, "a.test", 1)
	set(t, s, docindex.SetBlock, "a.test", uint64(time.Now().Unix()+1))
	if n := Count(t, s, nil); n.Queues != 0 {
		t.Errorf("%d queues are there; want none before the first URL", n.Queues)
	}
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Second}
	wantURLs(t, call(t, s, one))
	time.Sleep(2 * time.Second)
	wantURLs(t, call(t, s, one), "http://a.test/1")
	time.Sleep(6 * time.Second)
	wantURLs(t, call(t, s, one))
	time.Sleep(time.Second)
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(time.Hour)
	wantURLs(t, call(t, s, one))
}

func callPassive(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1")...)
	if !Active(t, s) {
		t.Error("a new store is not active")
	}
	set(t, s, docindex.SetActive, "", 0)
	wantURLs(t, call(t, s, any))
	if Active(t, s) {
		t.Error("active after it was set passive")
	}
	set(t, s, docindex.SetActive, "", 1)
	wantURLs(t, call(t, s, any), "http://a.test/1")
}

func callPortions(t *testing.T, s docindex.Store) {
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprintf("http://a.test/%d", i))
	}
	set(t, s, docindex.SetDelay, "", 0)
	add(t, s, urls(want...)...)
	add(t, s, urls("http://b.test/1")...)
	var during []string
	portions := 0
	var got []string
	err := s.Serve(t.Context(), any, func(h *docindex.Served) error {
		portions++
		for i := range h.Len() {
			got = append(got, string(h.At(i).URL))
		}
		if portions == 1 { // a second call meanwhile does not get the same queue
			during = call(t, s, any)
		}
		return nil
	})
	if err != nil || portions < 3 {
		t.Errorf("Serve gave %d portions, %v; want some", portions, err)
	}
	wantURLs(t, during, "http://b.test/1")
	wantURLs(t, got, want...)
}

func callBroken(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	gone := errors.New("gone")
	if err := s.Serve(t.Context(), any, func(*docindex.Served) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("Serve = %v; want the client's error", err)
	}
	wantStates(t, s, 0, 2, 0)
	time.Sleep(time.Minute)
	wantURLs(t, call(t, s, any), "http://a.test/1", "http://a.test/2")
}

// answer reports what a host answered.
func answer(t *testing.T, s docindex.Store, host string, status int, retryAfter time.Duration) {
	t.Helper()
	err := s.Answered(t.Context(), []docindex.HostAnswer{{Host: []byte(host), Status: status, RetryAfter: retryAfter}})
	if err != nil {
		t.Fatal(err)
	}
}

// callBackoff doubles the gap of a host with each 503, and halves it with each success.
func callBackoff(t *testing.T, s docindex.Store) {
	s.SetSlotGap(2 * time.Second)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	for i := range 20 {
		add(t, s, urls(fmt.Sprintf("http://a.test/%d", i))...)
	}
	got := call(t, s, one)
	step := func(status int, gap time.Duration) {
		t.Helper()
		answer(t, s, "a.test", status, 0)
		ended(t, s, got...)
		time.Sleep(gap - 2*time.Millisecond)
		if early := call(t, s, one); len(early) > 0 {
			t.Fatalf("after %d %q are served before %v", status, early, gap)
		}
		time.Sleep(4 * time.Millisecond)
		if got = call(t, s, one); len(got) != 1 {
			t.Fatalf("after %d %q are served when %v have passed; want one", status, got, gap)
		}
	}
	step(503, 4*time.Second)
	step(429, 8*time.Second)
	step(404, 8*time.Second)
	step(503, 16*time.Second)
	step(200, 8*time.Second)
	step(301, 4*time.Second)
	step(200, time.Second) // the usual delay of queues
	for range 10 {
		answer(t, s, "a.test", 503, 0)
	}
	step(503, 128*time.Second)
}

// callRetryAfter leaves a host alone for as long as it says, for calls and slots, and no other.
func callRetryAfter(t *testing.T, s docindex.Store) {
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2")...)
	wantURLs(t, call(t, s, one), "http://a.test/1", "http://b.test/1")
	answer(t, s, "a.test", 503, 10*time.Minute)
	ended(t, s, "http://a.test/1", "http://b.test/1")
	time.Sleep(time.Second + 2*time.Millisecond)
	wantURLs(t, call(t, s, one), "http://b.test/2")
	ended(t, s, "http://b.test/2")
	time.Sleep(10*time.Minute - 2*time.Second)
	wantURLs(t, call(t, s, one))
	wantTexts(t, take(t, s, 10))
	time.Sleep(2 * time.Second)
	wantTexts(t, take(t, s, 10), "http://a.test/2")
	answer(t, s, "b.test", 429, 24*time.Hour) // an hour counts
	add(t, s, urls("http://b.test/3")...)
	time.Sleep(time.Hour - time.Second)
	wantURLs(t, call(t, s, one))
	time.Sleep(2 * time.Second)
	wantURLs(t, call(t, s, one), "http://b.test/3")
}

// news tries each kind of put and update for a URL in each of its states.
func news(t *testing.T, s docindex.Store) {
	now := time.Now().Unix()
	u := func(meta string, due int64, known bool) docindex.Put {
		return docindex.Put{URL: []byte("http://a.test/"), Metadata: []byte(meta), Due: due, Update: known}
	}
	for i, step := range []struct {
		name string
		put  docindex.Put
		want docindex.Verdict
		due  int64
		meta string
	}{
		{"known, unknown, never", u("", docindex.Never, true), docindex.New, docindex.Never, ""},
		{"discovered, completed", u(`{"a":["1"]}`, now, false), docindex.Same, docindex.Never, ""},
		{"completed again", u(`{"a":["1"]}`, docindex.Never, true), docindex.Changed, docindex.Never, ""},
		{"rescheduled", u(`{"b":["2"]}`, now+100, true), docindex.Changed, now + 100, `{"b":["2"]}`},
		{"discovered, scheduled", u(`{"c":["3"]}`, now, false), docindex.Same, now + 100, `{"b":["2"]}`},
		{"sooner", u(`{"d":["4444"]}`, now-1, true), docindex.Changed, now - 1, `{"d":["4444"]}`},
		{"later", u("", now+50, true), docindex.Changed, now + 50, ""},
		{"completed", u("", docindex.Never, true), docindex.Changed, docindex.Never, ""},
		{"scheduled for now", u("", now, true), docindex.Changed, now, ""},
	} {
		if v := add(t, s, step.put); v[0] != step.want {
			t.Errorf("step %d, %s: verdict %v; want %v", i, step.name, v[0], step.want)
		}
		d, err := s.Find(t.Context(), docindex.Scope{Key: []byte("a.test")}, step.put.URL)
		if err != nil || d.Due != step.due || string(d.Metadata) != step.meta {
			t.Errorf("step %d, %s: due %d with %s, %v; want %d with %s", i, step.name, d.Due, d.Metadata,
				err, step.due, step.meta)
		}
		n := Count(t, s, nil)
		if n.Scheduled+n.InTransit+n.Completed != 1 {
			t.Errorf("step %d, %s: counts are %+v; want one URL", i, step.name, n)
		}
	}
	wantURLs(t, call(t, s, any), "http://a.test/")
	if v := add(t, s, u("", now+5, true)); v[0] != docindex.Changed {
		t.Errorf("news of a URL in transit are %v; want changed", v[0])
	}
	wantStates(t, s, 1, 0, 0)
	time.Sleep(5 * time.Second)
	wantURLs(t, call(t, s, any), "http://a.test/")
}

func exact(t *testing.T, s docindex.Store) {
	texts := []string{"HTTP://User@A.test:80/x#y", "ftp://b.test/\u00fc", "no url at all", "http://a.test/x"}
	for _, text := range texts {
		add(t, s, docindex.Put{URL: []byte(text), Key: []byte("k")})
	}
	wantURLs(t, call(t, s, any), texts...)
	var p docindex.Puts
	for _, bad := range []docindex.Put{{}, {URL: []byte("no host")},
		{URL: []byte("http://a.test/" + strings.Repeat("x", 8192))}} {
		if err := p.AddExact(bad, docindex.HostOf(bad.URL)); err == nil {
			t.Errorf("%.20q is taken", bad.URL)
		}
	}
	// The slots get the URLs as they were put. Reports name them in serialised form.
	time.Sleep(time.Minute)
	b := take(t, s, 1)
	wantTexts(t, b, texts[0])
	var o docindex.Outcomes
	o.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: []byte("http://User@a.test/x")})
	report(t, s, &o)
	wantStates(t, s, 3, 0, 1)
}

func look(t *testing.T, s docindex.Store) {
	now := time.Now()
	add(t, s, urls("http://a.test/1", "http://b.test/1", "http://a.test/2")...)
	add(t, s, docindex.Put{URL: []byte("http://a.test/1"), Crawl: []byte("c")})
	ended(t, s, "http://b.test/1")
	var got []string
	list := func(s docindex.Store, scope docindex.Scope, most int) []string {
		got = nil
		err := s.List(t.Context(), scope, func(d *docindex.Document) bool {
			got = append(got, string(d.URL))
			if d.Created.Unix() != now.Unix() {
				t.Errorf("%s was created %v; want %v", d.URL, d.Created, now)
			}
			return len(got) < most
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := list(s, docindex.Scope{}, 10)
	wantURLs(t, list(s, docindex.Scope{}, 2), all[:2]...) // the same order each time
	slices.Sort(all[:2])                                  // the store decides the order within a queue
	wantURLs(t, all, "http://a.test/1", "http://a.test/2", "http://b.test/1")
	wantURLs(t, list(s, docindex.Scope{Key: []byte("b.test")}, 10), "http://b.test/1")
	wantURLs(t, list(s, docindex.Scope{Key: []byte("none")}, 10))
	queues := ""
	if err := s.Queues(t.Context(), nil, func(key []byte, idle bool) bool {
		queues += fmt.Sprintf("%s %v;", key, idle)
		return true
	}); err != nil || queues != "a.test false;b.test true;" {
		t.Errorf("queues are %s, %v", queues, err)
	}
	for _, c := range []struct {
		name  string
		scope *docindex.Scope
		want  docindex.Counts
	}{
		{"all", nil, docindex.Counts{Scheduled: 3, Completed: 1, Queues: 3, Active: 2}},
		{"crawl", &docindex.Scope{}, docindex.Counts{Scheduled: 2, Completed: 1, Queues: 2, Active: 1}},
		{"queue", &docindex.Scope{Key: []byte("a.test")}, docindex.Counts{Scheduled: 2, Queues: 1, Active: 1}},
		{"unknown", &docindex.Scope{Crawl: []byte("d")}, docindex.Counts{}},
	} {
		if got := Count(t, s, c.scope); got != c.want {
			t.Errorf("%s: counts are %+v; want %+v", c.name, got, c.want)
		}
	}
	if _, err := s.Find(t.Context(), docindex.Scope{Key: []byte("a.test")},
		[]byte("http://a.test/3")); !errors.Is(err, docindex.ErrUnknown) {
		t.Errorf("Find of an unknown URL: %v; want ErrUnknown", err)
	}
}

func deletes(t *testing.T, s docindex.Store) {
	var many []string
	for i := range 2500 {
		many = append(many, fmt.Sprintf("http://a.test/%d", i))
	}
	add(t, s, urls(many...)...)
	add(t, s, urls("http://b.test/1", "http://c.test/1")...)
	call(t, s, docindex.Request{AnyCrawl: true, PerQueue: 5, Lease: time.Minute})
	ended(t, s, many[0], "http://b.test/1")
	forget := func(scope docindex.Scope, want int) {
		t.Helper()
		if n, err := s.Delete(t.Context(), scope); err != nil || n != want {
			t.Errorf("Delete(%s) = %d, %v; want %d", scope.Key, n, err, want)
		}
	}
	forget(docindex.Scope{Key: []byte("none")}, 0)
	forget(docindex.Scope{Key: []byte("a.test")}, 2500)
	forget(docindex.Scope{Key: []byte("a.test")}, 0)
	wantStates(t, s, 0, 1, 1)
	if v := add(t, s, urls(many[0])...); v[0] != docindex.New {
		t.Errorf("a forgotten URL is %v; want new", v[0])
	}
	time.Sleep(time.Minute) // until the leases of the deleted documents have ended
	wantURLs(t, call(t, s, ofA), many[0])
	forget(docindex.Scope{}, 3)
	if len(CrawlsOf(t, s)) != 0 || Count(t, s, nil) != (docindex.Counts{}) {
		t.Errorf("left are crawls %q and %+v; want nothing", CrawlsOf(t, s), Count(t, s, nil))
	}
	time.Sleep(time.Hour) // nor do leases come back
	wantURLs(t, call(t, s, any))
}
