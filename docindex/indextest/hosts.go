package indextest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/explain"
)

var hostCases = []testCase{
	{"hosts: a block holds for all crawls and doors", hostBlock},
	{"hosts: a delay at the slots, crawls in turn", hostDelayAtSlots},
	{"hosts: a delay at calls", hostDelayAtCalls},
	{"hosts: a delay between doors", hostDelayBetween},
	{"hosts: a delay counts what was before it", hostDelayBefore},
	{"hosts: recalled when something is set", hostRecall},
	{"hosts: what cannot be set", hostNot},
	{"hosts: why not now", hostWhy},
	{"hosts: counts", hostCounts},
	{"hosts: a queue has several while a URL is out", hostBecomesMixed},
	{"hosts: rules that bar", hostBarred},
	{"hosts: rules that pace", hostPaced},
}

// setHost changes a setting of a host.
func setHost(t *testing.T, s docindex.Store, which docindex.SettingKind, host string, value uint64) {
	t.Helper()
	err := s.Set(t.Context(), docindex.Setting{Kind: which, Scope: docindex.Scope{Key: []byte(host)},
		Host: true, Value: value})
	if err != nil {
		t.Fatalf("Set(%v, %s, %d): %v", which, host, value, err)
	}
}

// in returns the value of a block that ends so many seconds from now.
func in(seconds int64) uint64 { return uint64(time.Now().Unix() + seconds - 1) }

func crawled(crawl string, texts ...string) (puts []docindex.Put) {
	for _, one := range urls(texts...) {
		one.Crawl = []byte(crawl)
		puts = append(puts, one)
	}
	return puts
}

func keyed(key string, texts ...string) (puts []docindex.Put) {
	for _, one := range urls(texts...) {
		one.Key = []byte(key)
		puts = append(puts, one)
	}
	return puts
}

// hostBecomesMixed puts a URL of another host into a queue of which a client has a URL. When that is
// reported, its host is free.
func hostBecomesMixed(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1")...)
	wantURLs(t, call(t, s, any), "http://a.test/1")
	add(t, s, keyed("a.test", "http://b.test/1")...)
	add(t, s, crawled("c", "http://a.test/2")...)
	if got := texts(take(t, s, 9)); slices.Contains(got, "http://a.test/2") {
		t.Errorf("slots have %q while a client has a URL of a.test", got)
	}
	ended(t, s, "http://a.test/1")
	time.Sleep(10 * time.Second)
	if got := texts(take(t, s, 9)); !slices.Contains(got, "http://a.test/2") {
		t.Errorf("slots have %q when the client has reported its URL; want http://a.test/2", got)
	}
}

func hostBlock(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://b.test/1")...)
	setHost(t, s, docindex.SetBlock, "a.test", in(60))
	add(t, s, crawled("later", "http://a.test./2")...)
	add(t, s, keyed("mixed", "http://a.test/3", "http://b.test/3")...)
	wantTexts(t, take(t, s, 10), "http://b.test/1", "http://b.test/3")
	time.Sleep(59 * time.Second)
	wantURLs(t, call(t, s, any))
	wantTexts(t, take(t, s, 10))
	time.Sleep(2 * time.Second) // one second of them for the mixed queue, in which a call found nothing
	got := call(t, s, any)
	slices.Sort(got)
	wantURLs(t, got, "http://a.test./2", "http://a.test/1", "http://a.test/3")
	setHost(t, s, docindex.SetBlock, "c.test", in(3600))
	add(t, s, urls("http://c.test/1")...)
	wantTexts(t, take(t, s, 10))
	setHost(t, s, docindex.SetBlock, "c.test", 0)
	wantTexts(t, take(t, s, 10), "http://c.test/1")
}

func hostDelayAtSlots(t *testing.T, s docindex.Store) {
	setHost(t, s, docindex.SetDelay, "a.test", 10)
	for _, crawl := range []string{"x", "y", "z"} {
		add(t, s, crawled(crawl, "http://a.test/"+crawl+"1", "http://a.test/"+crawl+"2")...)
	}
	seen := map[string]int{}
	for range 6 {
		b := take(t, s, 10)
		if b.Len() != 1 {
			t.Fatalf("%q go out at once; want one", texts(b))
		}
		seen[string(b.At(0).URL)[:len("http://a.test/x")]]++
		time.Sleep(time.Minute)
		wantTexts(t, take(t, s, 10)) // while one is out
		end(t, s, b)
		if len(seen) < 3 && seen[string(b.At(0).URL)[:len("http://a.test/x")]] > 1 {
			t.Errorf("%s goes out again while other crawls wait", b.At(0).URL)
		}
		time.Sleep(10*time.Second - 2*time.Millisecond)
		wantTexts(t, take(t, s, 10))
		time.Sleep(2 * time.Millisecond)
	}
	wantStates(t, s, 0, 0, 6)
}

func hostDelayAtCalls(t *testing.T, s docindex.Store) {
	setHost(t, s, docindex.SetDelay, "a.test", 10)
	add(t, s, urls("http://a.test/1", "http://b.test/1")...)
	add(t, s, crawled("c", "http://a.test/2")...)
	add(t, s, keyed("mixed", "http://a.test/3")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	all := call(t, s, one)
	if len(all) != 2 {
		t.Errorf("%q are served; want one of each host", all)
	}
	for range 2 {
		time.Sleep(10*time.Second - 2*time.Millisecond)
		wantURLs(t, call(t, s, one))
		time.Sleep(1002 * time.Millisecond) // until the store tries the mixed queue again
		some := call(t, s, one)
		if len(some) != 1 {
			t.Errorf("%q are served; want one", some)
		}
		all = append(all, some...)
	}
	slices.Sort(all)
	wantURLs(t, all, "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1")
}

func hostDelayBetween(t *testing.T, s docindex.Store) {
	setHost(t, s, docindex.SetDelay, "a.test", 10)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4")...)
	one := docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Hour}
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	time.Sleep(10*time.Second - 2*time.Millisecond)
	wantTexts(t, take(t, s, 1))
	time.Sleep(2 * time.Millisecond)
	b := take(t, s, 10)
	wantTexts(t, b, "http://a.test/2")
	time.Sleep(time.Minute)
	end(t, s, b)
	time.Sleep(10*time.Second - 2*time.Millisecond)
	wantURLs(t, call(t, s, one))
	time.Sleep(2 * time.Millisecond)
	wantURLs(t, call(t, s, one), "http://a.test/3")
	ended(t, s, "http://a.test/3")
	setHost(t, s, docindex.SetDelay, "a.test", 0)
	time.Sleep(time.Second) // the usual delay of queues
	wantTexts(t, take(t, s, 1), "http://a.test/4")
}

func hostDelayBefore(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	b := take(t, s, 1)
	end(t, s, b)
	time.Sleep(3 * time.Second)
	setHost(t, s, docindex.SetDelay, "a.test", 10)
	setHost(t, s, docindex.SetDelay, "b.test", 10) // nothing was ever requested from it
	wantTexts(t, take(t, s, 10), "http://b.test/1")
	time.Sleep(7*time.Second - 2*time.Millisecond)
	wantTexts(t, take(t, s, 10))
	time.Sleep(2 * time.Millisecond)
	wantTexts(t, take(t, s, 10), "http://a.test/2")
}

func hostRecall(t *testing.T, s docindex.Store) {
	got := recalled(s)
	add(t, s, urls("http://a.test/1", "http://b.test/1")...)
	add(t, s, crawled("c", "http://a.test/2")...)
	b := take(t, s, 10)
	setHost(t, s, docindex.SetDelay, "a.test", 10)
	wantURLs(t, got(b), "http://a.test/1", "http://a.test/2")
	setHost(t, s, docindex.SetBlock, "b.test", in(60))
	wantURLs(t, got(b), "http://b.test/1")
}

func hostNot(t *testing.T, s docindex.Store) {
	for _, one := range []docindex.Setting{
		{Kind: docindex.SetLimit, Scope: docindex.Scope{Key: []byte("a.test")}, Host: true, Value: 1},
		{Kind: docindex.SetBlock, Host: true, Value: 1},
		{Kind: docindex.SetDelay, Host: true, Value: 1},
	} {
		if err := s.Set(t.Context(), one); !errors.Is(err, docindex.ErrNoHost) {
			t.Errorf("Set(%+v): %v; want ErrNoHost", one, err)
		}
	}
}

// availabilityText returns an availability in short: "open", or its time, or "event", and the
// reason.
func availabilityText(turn docindex.Availability) string {
	switch {
	case turn.Open:
		return "open"
	case turn.NotBefore.IsZero():
		return "event " + explain.Wait(&turn.Wait, "")
	}
	return fmt.Sprintf("+%v %s", time.Until(turn.NotBefore).Round(time.Second), explain.Wait(&turn.Wait, ""))
}

const both = "at both"

// whyCase is a rule of the doc index. do makes it apply to a host. slots and calls are the texts
// for host slots and for calls of URL Frontier clients; calls may be both: the same text as slots.
type whyCase struct {
	name         string
	do           func(host string)
	slots, calls string
}

// stateCases are rules about what is scheduled, blocked or limited.
func stateCases(t *testing.T, s docindex.Store) []whyCase {
	return []whyCase{
		{"unknown", func(string) {}, "event ", both},
		{"may go out", func(h string) { add(t, s, urls("http://"+h+"/1")...) }, "open", both},
		{"completed", func(h string) {
			add(t, s, urls("http://"+h+"/1")...)
			ended(t, s, "http://"+h+"/1")
		}, "event nothing of it is scheduled", both},
		{"scheduled for later", func(h string) {
			add(t, s, docindex.Put{URL: []byte("http://" + h + "/1"), Update: true, Due: time.Now().Unix() + 90})
		}, "+1m30s the first of its documents is scheduled for then", both},
		{"blocked by the operator", func(h string) {
			add(t, s, urls("http://"+h+"/1")...)
			setHost(t, s, docindex.SetBlock, h, in(60))
		}, "+1m0s blocked by the operator", both},
		{"blocked queue", func(h string) {
			add(t, s, crawled("c", "http://"+h+"/1")...)
			err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetBlock,
				Scope: docindex.Scope{Crawl: []byte("c"), Key: []byte(h)}, Value: in(60)})
			if err != nil {
				t.Fatal(err)
			}
		}, `+1m0s its queue in crawl "c" is blocked (BlockQueueUntil)`, both},
		{"limit", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			ended(t, s, "http://"+h+"/1")
			set(t, s, docindex.SetLimit, h, 1)
		}, "event the limit of its queue, 1 completed URLs, is reached (SetCrawlLimit)", both},
	}
}

// delayCases are rules about delays, gaps, and documents in transit.
func delayCases(t *testing.T, s docindex.Store) []whyCase {
	one := func(key string) docindex.Request {
		return docindex.Request{Scope: docindex.Scope{Key: []byte(key)}, AnyCrawl: true, PerQueue: 1,
			Lease: time.Minute}
	}
	return []whyCase{
		{"delay of the operator", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			setHost(t, s, docindex.SetDelay, h, 30)
			call(t, s, one(h))
			ended(t, s, "http://"+h+"/1")
		}, "+30s the operator's delay of 30s", both},
		{"delay of the operator, one out", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			setHost(t, s, docindex.SetDelay, h, 30)
			takeOn(t, s, h)
		}, "event one at a time, by the operator's delay of 30s",
			"event 1 of its documents are at host slots, for line spiders"},
		{"delay of the queue", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			set(t, s, docindex.SetDelay, h, 30)
			call(t, s, one(h))
			ended(t, s, "http://"+h+"/1")
		}, "+30s the delay of its queue, 30s (SetDelay)", both},
		{"delay of the queue, one out", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			set(t, s, docindex.SetDelay, h, 30)
			takeOn(t, s, h)
		}, "event one at a time, by the delay of its queue, 30s (SetDelay)",
			"event 1 of its documents are at host slots, for line spiders"},
		{"after calls", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			call(t, s, one(h))
			ended(t, s, "http://"+h+"/1")
		}, "+4s others asked it lately, and the slots keep 4s between two requests (Req_Host_Per_Sec)",
			"+1s the delay of all queues, 1s (SetDelay without a key, or the usual one)"},
		{"with a client", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			call(t, s, one(h))
		}, "event 1 of its documents are with clients of the URL Frontier, until they report them or their leases end",
			"+1s the delay of all queues, 1s (SetDelay without a key, or the usual one)"},
		{"remote lease", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			var b docindex.Batch
			if err := s.Lease(t.Context(), 1, nil, time.Minute, &b); err != nil || b.Len() != 1 {
				t.Fatalf("%d leased, %v", b.Len(), err)
			}
		}, "event 1 of its documents are with daemons that took them over HTTP, until they report them " +
			"or their leases end", both},
		{"what the slots learned", func(h string) {
			add(t, s, urls("http://"+h+"/1", "http://"+h+"/2")...)
			b := takeOn(t, s, h)
			var o docindex.Outcomes
			o.Add(docindex.Outcome{DocID: b.At(0).DocID, Pause: 20 * time.Second, Gap: 20 * time.Second})
			report(t, s, &o)
		}, "open", "+20s the slots asked it lately: its pace, its robots.txt or its Retry-After says so"},
	}
}

// hostWhy has one case for each rule.
func hostWhy(t *testing.T, s docindex.Store) {
	s.SetSlotGap(4 * time.Second)
	for n, c := range append(stateCases(t, s), delayCases(t, s)...) {
		host := fmt.Sprintf("h%d.test", n)
		c.do(host)
		l, err := s.HostStatus(t.Context(), []byte(host))
		if err != nil {
			t.Fatal(err)
		}
		if c.calls == both {
			c.calls = c.slots
		}
		if got := availabilityText(l.AtSlots); got != c.slots {
			t.Errorf("%s: slots: %q; want %q", c.name, got, c.slots)
		}
		if got := availabilityText(l.AtFrontier); got != c.calls {
			t.Errorf("%s: calls: %q; want %q", c.name, got, c.calls)
		}
		setHost(t, s, docindex.SetBlock, host, 1<<40) // out of the way of the others
	}
	set(t, s, docindex.SetActive, "", 0)
	if l, err := s.HostStatus(t.Context(), []byte("h1.test")); err != nil ||
		availabilityText(l.AtFrontier) != "event clients are given nothing at all (SetActive)" {
		t.Errorf("passive: %+v, %v", l.AtFrontier, err)
	}
}

// takeOn takes one document for the slots. It must be of the given host.
func takeOn(t *testing.T, s docindex.Store, host string) *docindex.Batch {
	t.Helper()
	b := take(t, s, 1)
	wantTexts(t, b, "http://"+host+"/1")
	return b
}

func hostBarred(t *testing.T, s docindex.Store) {
	barred := func(name string) func([]byte) docindex.HostRule {
		return func(host []byte) docindex.HostRule { return docindex.HostRule{Barred: string(host) == name} }
	}
	s.SetHostRules(barred("a.test"))
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	add(t, s, keyed("mixed", "http://a.test/3", "http://b.test/2")...)
	wantURLs(t, call(t, s, any), "http://b.test/1", "http://b.test/2")
	wantURLs(t, call(t, s, byKeyOf("a.test")))
	wantTexts(t, take(t, s, 1), "http://a.test/1") // a rule in SetHostRules blocks calls, not the slots
	time.Sleep(2 * time.Second)
	s.SetHostRules(barred("b.test"))
	add(t, s, urls("http://c.test/1")...)
	wantURLs(t, call(t, s, any), "http://c.test/1") // calls get nothing of a.test anyway while the slots have it
	s.SetHostRules(nil)
	add(t, s, urls("http://b.test/4")...)
	time.Sleep(2 * time.Second)
	wantURLs(t, call(t, s, byKeyOf("b.test")), "http://b.test/4")
}

// hostPaced has a rule set a gap for a host. Each URL that a call is given counts.
func hostPaced(t *testing.T, s docindex.Store) {
	set(t, s, docindex.SetDelay, "", 0)
	s.SetHostRules(func(host []byte) docindex.HostRule {
		if string(host) == "a.test" {
			return docindex.HostRule{Gap: 5000}
		}
		return docindex.HostRule{}
	})
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "http://b.test/1",
		"http://b.test/2")...)
	add(t, s, crawled("c", "http://a.test/5")...)
	most := func(n uint32) docindex.Request {
		return docindex.Request{AnyCrawl: true, PerQueue: n, Lease: time.Hour}
	}
	wantURLs(t, call(t, s, byKey(most(2), "a.test", "")), "http://a.test/1", "http://a.test/2")
	ended(t, s, "http://a.test/1", "http://a.test/2")
	time.Sleep(9990 * time.Millisecond)
	wantURLs(t, call(t, s, most(1)), "http://b.test/1")
	ended(t, s, "http://b.test/1")
	wantURLs(t, call(t, s, most(1)), "http://b.test/2")
	time.Sleep(20 * time.Millisecond)
	first := call(t, s, most(1))
	if len(first) != 1 {
		t.Errorf("%q are served after two gaps; want one", first)
	}
}

// byKey is a request for a queue of a crawl.
func byKey(r docindex.Request, key, crawl string) docindex.Request {
	r.Key, r.Crawl, r.AnyCrawl = []byte(key), []byte(crawl), false
	return r
}

func byKeyOf(key string) docindex.Request {
	r := any
	r.Key = []byte(key)
	return r
}

func hostCounts(t *testing.T, s docindex.Store) {
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://b.test/1")...)
	add(t, s, crawled("c", "http://a.test./3")...)
	add(t, s, keyed("mixed", "http://a.test/4")...)
	ended(t, s, "http://a.test/1")
	setHost(t, s, docindex.SetDelay, "a.test", 7)
	setHost(t, s, docindex.SetBlock, "a.test.", in(60))
	l, err := s.HostStatus(t.Context(), []byte("a.test"))
	if err != nil {
		t.Fatal(err)
	}
	want := docindex.HostStatus{
		Counts:  docindex.Counts{Scheduled: 2, Completed: 1, Queues: 2, Active: 2},
		Blocked: time.Now().Truncate(time.Second).Add(time.Minute).UTC(), Delay: 7 * time.Second,
		Site: docindex.LevelStatus{Name: "a.test"},
	}
	l.AtSlots, l.AtFrontier = docindex.Availability{}, docindex.Availability{}
	if l != want {
		t.Errorf("%+v; want %+v", l, want)
	}
}
