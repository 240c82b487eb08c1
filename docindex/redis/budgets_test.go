package redis

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
	"urlserver/internal/testkit/virtualcrawl"
)

func TestBudgets(t *testing.T) {
	addr := redistest.Start(t).Addr()
	indextest.RunSmallBudgets(t, func(t *testing.T) docindex.Store { return openStore(t, nil, addr) })
}

// TestBrokenAside: keys of domains over their budget that somebody else has written cost no URL.
// What they stand for is served again when they are deleted.
func TestBrokenAside(t *testing.T) {
	d := newDaemons(t)
	for _, kind := range asideKeys {
		s := d.start()
		flush(t, s)
		s.SetBudget(2)
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf("http://h%d.a.example/", i))
		}
		for i := range 5 {
			all = append(all, fmt.Sprintf("http://b%d.example/", i))
		}
		putURLs(t, s, "", all...)
		got := map[string]int{}
		fetch := func() {
			var b docindex.Batch
			if err := s.Candidates(t.Context(), 1, nil, &b); err != nil {
				t.Fatal(err)
			}
			for _, url := range urls(&b) {
				got[url]++
			}
			end(t, s, &b)
		}
		for range 10 {
			fetch()
		}
		if n := len(got); n < 8 || n > 30 {
			t.Fatalf("%d pages are out before a key is broken; want some of the domain that waits to be left", n)
		}
		c := reach(t, s)
		for _, base := range s.bases {
			key := base + ":" + strings.ReplaceAll(kind, "NAME", "0:a.example")
			if err := c.Do(t.Context(), c.B().Set().Key(key).Value("x").Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		fetch()
		s.sweep(t.Context())
		for _, base := range s.bases {
			key := base + ":" + strings.ReplaceAll(kind, "NAME", "0:a.example")
			if err := c.Do(t.Context(), c.B().Del().Key(key).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		s.sweep(t.Context())
		for range 60 {
			fetch()
		}
		for _, url := range all {
			if got[url] != 1 {
				t.Errorf("%s: %s was handed out %d times; want once", kind, url, got[url])
			}
		}
	}
}

// TestOldQueuesHaveBudgets: queues from before there were budgets are set aside when their domain
// waits.
func TestOldQueuesHaveBudgets(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	s.SetBudget(2)
	for i := range 20 {
		putURLs(t, s, "", fmt.Sprintf("http://h%d.a.example/", i))
	}
	for i := range 3 {
		putURLs(t, s, "", fmt.Sprintf("http://b%d.example/", i))
	}
	forget := newScript(func() string {
		return `
for _, id in ipairs(call('HVALS', base .. ':names')) do
  local q = queue(id)
  if string.find(q.k, 'a.example', 1, true) then q.s = nil touch(q) end
end
return done({})`
	})
	if _, err := s.everywhere(t.Context(), forget); err != nil {
		t.Fatal(err)
	}
	first := take(t, s)
	n := 0
	for _, url := range urls(first) {
		if strings.Contains(url, ".a.example") {
			n++
		}
	}
	if n != 2 || first.Len() != 5 {
		t.Errorf("%d pages, %d of them of the domain; want 5 and 2", first.Len(), n)
	}
	end(t, s, first)
	for range 30 {
		end(t, s, take(t, s))
	}
	if n, err := s.Count(t.Context(), nil); err != nil || n.Completed != 23 {
		t.Errorf("%+v, %v; want all completed", n, err)
	}
}

// TestClientsKeepBudgets: a client is given what it may have of a domain, then all others, and then
// the domain goes on.
func TestClientsKeepBudgets(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	s.SetBudget(2)
	for i := range 20 {
		putURLs(t, s, "", fmt.Sprintf("http://h%d.a.example/", i))
	}
	for i := range 10 {
		putURLs(t, s, "", fmt.Sprintf("http://b%d.example/", i))
	}
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: time.Minute}
	got := ""
	for range 30 {
		if err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				if strings.Contains(string(h.At(i).URL), ".a.example") {
					got += "a"
				} else {
					got += "b"
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "aa" + strings.Repeat("b", 10) + strings.Repeat("a", 18); got != want {
		t.Errorf("clients are given %s; want %s", got, want)
	}
}

// TestRoundEndsOnce: two calls that see at one time that a domain has had its budget end its round
// once.
func TestRoundEndsOnce(t *testing.T) {
	for _, withWork := range []uint64{1, 10} {
		var b budgets
		b.set(2)
		for i, had := range []bool{false, true, true} {
			if b.charge("", "a.example", 1, 0) != had {
				t.Errorf("page %d: had its budget: %v; want %v", i, !had, had)
			}
		}
		aside, tell := b.end("", "a.example", withWork, 0)
		if overran := withWork > 1; aside != overran || tell != overran {
			t.Errorf("with %d domains it is set aside: %v, %v; want %v", withWork, aside, tell, overran)
		}
		before, _, _ := b.round("", "a.example")
		if aside, tell := b.end("", "a.example", 10, 0); aside || tell {
			t.Errorf("with %d domains the second call sets it aside, %v, %v", withWork, aside, tell)
		}
		if after, _, _ := b.round("", "a.example"); after != before {
			t.Errorf("with %d domains the second call leaves %+v; want %+v", withWork, after, before)
		}
	}
}

// TestRoundsKeepTheirPace: what a daemon knows of the pace since a domain overran, the next one knows.
func TestRoundsKeepTheirPace(t *testing.T) {
	var b budgets
	b.set(2)
	for range 2 {
		b.charge("", "a.example", 1, 1000)
	}
	b.end("", "a.example", 5, 1000)
	for i := range 4 {
		b.charge("", "b.example", 1, int64(2000+1000*i))
	}
	told := b.rounds()
	if len(told) != 1 || told[0].Left != 4 || told[0].Waited != 4000 {
		t.Fatalf("rounds: %+v; want 4 pages left after 4 s", told)
	}
	for range 2 {
		var next budgets
		next.set(2)
		next.restore(told, 100_000)
		as, since, overran := next.round("", "a.example")
		if !overran || since != 96_000 || as.Left != 4 {
			t.Errorf("restored: %+v since %d; want it to wait since 96000", as, since)
		}
		told = next.rounds()
	}
}

// TestServedWithoutRound: URLs that Redis has leased are given although the domains with work
// cannot be counted.
func TestServedWithoutRound(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	s.SetBudget(2)
	putURLs(t, s, "", "http://h0.a.example/", "http://h1.a.example/", "http://b.example/")
	putURLs(t, s, "mixed", "http://c.example/1", "http://c.example/2")
	c := reach(t, s)
	if err := c.Do(t.Context(), c.B().Arbitrary("ACL", "SETUSER", "default", "-hkeys").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.domainsWithWork(t.Context(), ""); err == nil {
		t.Fatal("the domains with work are counted")
	}
	want(t, "the client is given", call(t, s), "http://b.example/", "http://c.example/1", "http://c.example/2",
		"http://h0.a.example/", "http://h1.a.example/")
}

// TestSweep: domains of which nothing need be known are forgotten, of all crawls together. That
// takes no queue out of an answer.
func TestSweep(t *testing.T) {
	var b budgets
	b.set(10)
	list := []entry{{crawl: "a", domain: "known.example", can: 1}, {crawl: "a", domain: "new.example", can: 1}}
	b.ofLocked("a", "known.example")
	for i := range sweepDomains - 1 {
		b.ofLocked(fmt.Sprint(i%1000), fmt.Sprint(i))
	}
	plan, _ := b.may(list, 2, &taking{inTurn: map[string]bool{}, more: map[string]bool{}})
	if len(plan) != 2 {
		t.Errorf("%d queues are planned; want both", len(plan))
	}
	if n := len(b.crawls); n != 1 {
		t.Errorf("%d crawls are known; want one", n)
	}
}

// TestNothingNotedWithoutBudget: without a budget nothing is known of domains.
func TestNothingNotedWithoutBudget(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	put(t, s, 10)
	end(t, s, take(t, s))
	if n := len(s.budgets.crawls); n != 0 {
		t.Errorf("%d crawls are known; want none", n)
	}
	s.SetBudget(1)
	var p docindex.Puts
	for _, crawl := range []string{"one", "two"} {
		if err := p.Add(docindex.Put{URL: []byte("http://a.example/"), Crawl: []byte(crawl)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if n := len(s.budgets.crawls); n != 2 {
		t.Errorf("%d crawls are known; want two", n)
	}
	s.SetBudget(0)
	if n := len(s.budgets.crawls); n != 0 {
		t.Errorf("%d crawls are known without a budget; want none", n)
	}
}

// asideTime is how long a domain is set aside that no daemon sees: LEASE in core.lua.
const asideTime = 10 * time.Minute

// overrun puts 300 URLs of a domain and 3 others, and has a store hand out some, so that the domain
// waits.
func overrun(t *testing.T, s *Store) {
	t.Helper()
	s.SetBudget(2)
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("http://h%d.a.example/", i))
	}
	for i := range 3 {
		all = append(all, fmt.Sprintf("http://b%d.example/", i))
	}
	putURLs(t, s, "", all...)
	end(t, s, take(t, s))
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: time.Minute}
	if err := s.Serve(t.Context(), r, func(*docindex.Served) error { return nil }); err != nil {
		t.Fatal(err)
	}
	checkAside(t, s, 5)
}

// checkAside looks how many keys each shard has of domains that are set aside.
func checkAside(t *testing.T, s *Store, want int64) {
	t.Helper()
	c := reach(t, s)
	for _, base := range s.bases {
		n, err := c.Do(t.Context(), c.B().Exists().Key(base+":i", base+":i1", base+":i2", base+":i1:0:a.example",
			base+":i2:0:a.example").Build()).ToInt64()
		if n != want || err != nil {
			t.Fatalf("%s has %d keys of a domain that is set aside, %v; want %d", base, n, err, want)
		}
	}
}

// TestAsideEnds: when the daemon is no more that set a domain aside, or has no budget any more, the
// domain's URLs take turns with others again.
func TestAsideEnds(t *testing.T) {
	for _, how := range []string{"replaced", "died", "no budget"} {
		d := newDaemons(t)
		s := d.start()
		overrun(t, s)
		if how == "no budget" {
			s.SetBudget(0)
		} else {
			if how == "replaced" {
				s.Close()
			}
			s = d.start()
		}
		d.pass(time.Second) // places follow the time
		var others []string
		for i := range 100 {
			others = append(others, fmt.Sprintf("http://c%d.example/", i))
		}
		putURLs(t, s, "", others...)
		d.pass(asideTime)
		s.sweep(t.Context())
		checkAside(t, s, 0)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 200, nil, &b); err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			if url := string(b.At(i).URL); !strings.Contains(url, ".a.example") {
				t.Fatalf("%s: %d of %d are before %s; want those that were put first", how, i, b.Len(), url)
			}
		}
		if b.Len() != 200 {
			t.Errorf("%s: %d are handed out; want 200", how, b.Len())
		}
	}
}

// TestAsideStays: a domain stays set aside while it waits at a daemon.
func TestAsideStays(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	overrun(t, s)
	other := d.start()
	for i := range 4 {
		putURLs(t, s, "", fmt.Sprintf("http://n%d.example/", i))
		d.pass(asideTime*2/3 - time.Second)
		end(t, s, take(t, s))
		other.sweep(t.Context())
		checkAside(t, s, 5)
	}
}

// TestManyAside: an answer has some of many domains that are set aside, and all are handed out in the end.
func TestManyAside(t *testing.T) {
	const domains = 1500
	d := newDaemons(t)
	s := d.start()
	var all []string
	var ops []op
	for i := range domains {
		name := fmt.Sprintf("d%d.example", i)
		all = append(all, "http://"+name+"/")
		ops = append(ops, op{shardOf(name), asideScript, []string{flag(true), "", name}})
	}
	if _, err := s.unbroken(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	putURLs(t, s, "", all...)
	list, err := s.peek(t.Context(), 1000, &taking{})
	if err != nil || len(list) == 0 || len(list) > 64*shards {
		t.Errorf("the slots are listed %d queues, %v; want at most %d", len(list), err, 64*shards)
	}
	list, _, err = s.ready(t.Context(), &serving{r: docindex.Request{AnyCrawl: true, PerQueue: 1}})
	if err != nil || len(list) == 0 || len(list) > 64*shards {
		t.Errorf("a call is listed %d queues, %v; want at most %d", len(list), err, 64*shards)
	}
	got := map[string]bool{}
	for _, url := range urls(take(t, s)) {
		got[url] = true
	}
	for range 2 {
		for _, url := range call(t, s) {
			got[url] = true
		}
	}
	if len(got) != domains {
		t.Errorf("%d of %d URLs are handed out", len(got), domains)
	}
}

// TestSharedBudgets: the budgets of two daemons hold together.
func TestSharedBudgets(t *testing.T) {
	addr := redistest.Start(t).Addr()
	indextest.RunSharedBudgets(t, func(t *testing.T) []docindex.Store {
		first := openStore(t, nil, addr)
		second := patientStore(Config{Addrs: []string{addr}, Lease: testLease}, nil)
		t.Cleanup(func() { second.Close() })
		reach(t, second)
		return []docindex.Store{first, second}
	})
}

// crawlInRedis is a crawl of a daemon with 16 slots.
func crawlInRedis(t *testing.T) virtualcrawl.Rig {
	if os.Getenv("URLSERVER_LONG") == "" {
		t.Skip("crawls for minutes; URLSERVER_LONG=1 runs it, and RunSmallBudgets is quicker")
	}
	server, f := redistest.Start(t), newFerry()
	t.Cleanup(func() { close(f.jobs) })
	return virtualcrawl.Rig{
		Open: func(t *testing.T) docindex.Store { return f.open(t, server.Addr()) },
		Ahead: func(*configs.Config) docindex.Ahead {
			return docindex.Ahead{Queue: 9, Domain: 256, Waiting: 16}
		},
	}
}

func TestGeneratedNames(t *testing.T) {
	crawlInRedis(t).GeneratedNames(t, virtualcrawl.SmallNames(20, 30*time.Second))
}

func TestTarpitBesideHonestSites(t *testing.T) { crawlInRedis(t).Tarpit(t, 50, time.Hour, "%s-%d") }

// TestDeletedCrawlHasNoRounds deletes one of two crawls whose domains are over their budgets.
func TestDeletedCrawlHasNoRounds(t *testing.T) {
	s := newDaemons(t).start()
	s.SetBudget(10)
	var all []docindex.Round
	var notes []docindex.Note
	for _, crawl := range []string{"deleted", "kept"} {
		all = append(all, docindex.Round{Crawl: crawl, Domain: "a.example", Round: 1, Left: 5, Wait: 10})
		notes = append(notes, docindex.Note{Name: docindex.RoundNotes + crawl, Text: []byte("[]")})
	}
	s.RestoreRounds(all)
	if err := s.KeepNotes(t.Context(), notes); err != nil {
		t.Fatal(err)
	}
	for _, of := range []docindex.Scope{{Crawl: []byte("deleted")}, {Crawl: []byte("kept"), Key: []byte("a.example")}} {
		if _, err := s.Delete(t.Context(), of); err != nil {
			t.Fatal(err)
		}
	}
	if left := s.Rounds(); len(left) != 1 || left[0].Crawl != "kept" || s.budgets.domains != 1 {
		t.Errorf("of %d domains rounds are left: %+v; want those of one crawl", s.budgets.domains, left)
	}
	var names []string
	if err := s.EachNote(t.Context(), docindex.RoundNotes, func(name string, _ []byte) {
		names = append(names, name)
	}); err != nil || len(names) != 1 || names[0] != docindex.RoundNotes+"kept" {
		t.Errorf("notes %q, %v; want that of one crawl", names, err)
	}
}
