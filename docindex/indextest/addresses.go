package indextest

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"urlserver/docindex"
)

var addressCases = []testCase{
	{"addresses: two queues keep the gap of their address", addressGap},
	{"addresses: the paces of both levels are told", addressLevels},
	{"addresses: each URL counts", addressEachURL},
	{"addresses: queues that are open at once", addressOpen},
	{"addresses: a lease that ends closes the queue", addressLease},
	{"addresses: names that are not known yet", addressUnknown},
	{"addresses: blocked by a rule", addressBlocked},
	{"addresses: DNS that moves a host", addressMoves},
	{"addresses: one site of several hosts", addressSite},
	{"addresses: a shared network", addressNetwork},
	{"addresses: rules of all sites make an address faster", addressRaised},
	{"addresses: an address backs off", addressBackoff},
	{"addresses: many queues take turns", addressTurns},
	{"addresses: a crawl that nobody asks for holds up no other", addressCrawls},
	{"addresses: queues of several hosts", addressMixed},
	{"addresses: one that goes to others before its URLs have left", addressGone},
	{"addresses: one that goes to others before its many URLs have left", addressGoneOften},
	{"addresses: late URLs hold up no other daemon", addressGoneTells},
	{"addresses: one at which a turn ends before its URLs have left", addressTurnEnds},
	{"addresses: a URL whose queue is deleted stays open", func(t *testing.T, s docindex.Store) {
		addressForgotten(t, s, deleteAll)
	}},
	{"addresses: a URL that is purged stays open", func(t *testing.T, s docindex.Store) {
		addressForgotten(t, s, purgeAll)
	}},
	{"addresses: a URL that is forgotten and reported closes its queue", func(t *testing.T, s docindex.Store) {
		addressReported(t, s, deleteAll)
		addressReported(t, s, purgeAll)
	}},
	{"addresses: a URL whose crawl is stopped stays open", addressStopped},
	{"addresses: a URL whose queue gets other hosts stays open", addressBecomesMixed},
	{"addresses: switched off", addressOff},
}

// names is what the daemon knows of the addresses of hosts. It may be asked outside of a bubble.
type names struct {
	mu   sync.Mutex
	list map[string]docindex.HostAddress
}

var twoSeconds = docindex.Pace{Gap: 2000, Open: 1}

func (n *names) of(host []byte) docindex.HostAddress {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.list[string(host)]; ok {
		return a
	}
	return at(string(host)[:1])
}

func (n *names) set(host string, a docindex.HostAddress) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list[host] = a
}

// at returns an address by a letter, at which a request may be sent each two seconds.
func at(letter string) docindex.HostAddress {
	return docindex.HostAddress{Addr: netip.AddrFrom4([4]byte{192, 0, 2, letter[0]}), SitePace: twoSeconds,
		AddressPace: twoSeconds}
}

// withAddresses makes a store keep the pace of addresses. A host's address is by its first letter
// unless it is set. Queues have no delay, and the time that counts as asked is over.
func withAddresses(t *testing.T, s docindex.Store) *names {
	t.Helper()
	n := &names{list: map[string]docindex.HostAddress{}}
	s.SetAddresses(n.of)
	set(t, s, docindex.SetDelay, "", 0)
	time.Sleep(time.Minute)
	return n
}

// one requests one URL of each queue.
var one = docindex.Request{AnyCrawl: true, PerQueue: 1, Lease: time.Minute}

// wantNothingFor sees that nothing is served for some time.
func wantNothingFor(t *testing.T, s docindex.Store, d time.Duration) {
	t.Helper()
	const step = 100 * time.Millisecond
	for ; d > 0; d -= step {
		wantURLs(t, call(t, s, one))
		time.Sleep(min(step, d))
	}
	time.Sleep(5 * time.Millisecond) // a store may round up
}

// servedWithin asks again and again until something is served.
func servedWithin(t *testing.T, s docindex.Store, d time.Duration, r docindex.Request) []string {
	t.Helper()
	for end := time.Now().Add(d); ; time.Sleep(50 * time.Millisecond) {
		if got := call(t, s, r); len(got) > 0 {
			return got
		}
		if !time.Now().Before(end) {
			t.Fatalf("nothing is served within %v", d)
		}
	}
}

// wantWait sees that a store says why clients are given nothing of a host.
func wantWait(t *testing.T, s docindex.Store, host string, want docindex.WaitRule) {
	t.Helper()
	l, err := s.HostStatus(t.Context(), []byte(host))
	if err != nil || l.AtFrontier.Open || l.AtFrontier.Wait.Rule != want {
		t.Errorf("%s: %+v, %v; want rule %d", host, l.AtFrontier, err, want)
	}
}

// wantHeldBy sees that a store says which level holds a host back, and because of which sites.
func wantHeldBy(t *testing.T, s docindex.Store, host string, level docindex.WaitLevel, name, sites string) {
	t.Helper()
	l, err := s.HostStatus(t.Context(), []byte(host))
	w := l.AtFrontier.Wait
	if err != nil || w.Level != level || w.Name != name || w.Sites != sites {
		t.Errorf("%s: %+v, %v; want level %d, %q, because of %q", host, w, err, level, name, sites)
	}
}

func addressGap(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a1.test/2", "http://a2.test/1", "http://a2.test/2",
		"http://b.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1", "http://b.test/1")
	wantWait(t, s, "a2.test", docindex.WaitAddress)
	wantHeldBy(t, s, "a2.test", docindex.AddressWait, at("a").Addr.String(), "")
	ended(t, s, "http://a1.test/1")
	for _, want := range []string{"http://a2.test/1", "http://a1.test/2", "http://a2.test/2"} {
		wantNothingFor(t, s, 1990*time.Millisecond)
		wantURLs(t, servedWithin(t, s, 20*time.Millisecond, one), want)
		ended(t, s, want)
	}
}

// addressLevels sees that a store tells the paces of both levels: of hosts that were given to clients,
// and of those that wait.
func addressLevels(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a2.test/1")...)
	before := time.Now().Add(-time.Millisecond)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	wantNothingFor(t, s, 10*time.Millisecond)
	for host, open := range map[string]int{"a1.test": 1, "a2.test": 0} {
		l, err := s.HostStatus(t.Context(), []byte(host))
		if err != nil {
			t.Fatal(err)
		}
		pace := at("a")
		gap := time.Duration(pace.AddressPace.Gap) * time.Millisecond
		if a := l.Address; a.Level != docindex.AddressWait || a.Name != pace.Addr.String() || a.Gap != gap ||
			a.Open != 1 || a.MostOpen != pace.AddressPace.Open || a.Last.Before(before) || a.Next.Sub(a.Last) != gap {
			t.Errorf("%s is at an address with %+v", host, a)
		}
		if site := l.Site; site.Level != docindex.SiteWait || site.Name != host || site.Open != open ||
			site.Gap != time.Duration(pace.SitePace.Gap)*time.Millisecond || site.Last.IsZero() != (open == 0) {
			t.Errorf("%s is a site with %+v", host, site)
		}
	}
}

func addressEachURL(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a1.test/2", "http://a1.test/3", "http://a2.test/1")...)
	three := one
	three.PerQueue = 3
	wantURLs(t, call(t, s, three), "http://a1.test/1", "http://a1.test/2", "http://a1.test/3")
	ended(t, s, "http://a1.test/1", "http://a1.test/2", "http://a1.test/3")
	wantNothingFor(t, s, 5990*time.Millisecond)
	wantURLs(t, servedWithin(t, s, 2*time.Second, one), "http://a2.test/1")
}

func addressOpen(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	for _, host := range []string{"b1.test", "b2.test", "b3.test"} {
		two := at("b")
		two.AddressPace.Open = 2
		n.set(host, two)
	}
	add(t, s, urls("http://a1.test/1", "http://a2.test/1")...)
	add(t, s, crawled("c", "http://a1.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	wantNothingFor(t, s, 20*time.Second)
	wantWait(t, s, "a2.test", docindex.WaitAddressInUse)
	wantHeldBy(t, s, "a2.test", docindex.AddressWait, at("a").Addr.String(), "")
	ended(t, s, "http://a1.test/1")
	first := servedWithin(t, s, 3*time.Second, one)
	wantNothingFor(t, s, 20*time.Second)
	if len(first) != 1 {
		t.Errorf("%q are served; want one", first)
	}
	add(t, s, urls("http://b1.test/1", "http://b2.test/1", "http://b3.test/1")...)
	wantURLs(t, call(t, s, one), "http://b1.test/1")
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://b2.test/1")
	wantNothingFor(t, s, 20*time.Second)
	ended(t, s, "http://b1.test/1")
	wantURLs(t, servedWithin(t, s, 5*time.Second, one), "http://b3.test/1")
}

func addressLease(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a2.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	wantNothingFor(t, s, 59*time.Second)
	got := servedWithin(t, s, 5*time.Second, one)
	if len(got) != 1 {
		t.Errorf("%q are served when the lease has ended; want one", got)
	}
}

func addressUnknown(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	n.set("a.test", docindex.HostAddress{State: docindex.AddressAwaited, Retry: 100})
	n.set("b.test", docindex.HostAddress{State: docindex.AddressBusy})
	add(t, s, urls("http://a.test/1", "http://b.test/1", "http://c.test/1")...)
	wantURLs(t, call(t, s, one), "http://c.test/1")
	wantNothingFor(t, s, 5*time.Second)
	wantWait(t, s, "a.test", docindex.WaitAddressUnknown)
	wantWait(t, s, "b.test", docindex.WaitAddressUnknown)
	n.set("a.test", at("a"))
	wantURLs(t, servedWithin(t, s, time.Second, one), "http://a.test/1")
	n.set("b.test", at("b"))
	wantURLs(t, servedWithin(t, s, time.Second, one), "http://b.test/1")
	ended(t, s, "http://a.test/1")
	add(t, s, urls("http://a.test/2")...)
	n.set("a.test", docindex.HostAddress{State: docindex.AddressAwaited, Retry: 100}) // its TTL has passed
	wantNothingFor(t, s, 5*time.Second)
	n.set("a.test", at("a"))
	wantURLs(t, servedWithin(t, s, time.Second, one), "http://a.test/2")
}

func addressBlocked(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	n.set("a.test", docindex.HostAddress{Addr: at("a").Addr, Blocked: true, SitePace: twoSeconds,
		AddressPace: twoSeconds})
	add(t, s, urls("http://a.test/1", "http://b.test/1")...)
	wantURLs(t, call(t, s, one), "http://b.test/1")
	ended(t, s, "http://b.test/1")
	wantNothingFor(t, s, 10*time.Second)
	n.set("a.test", at("a"))
	s.SetAddresses(n.of) // as after a reload
	wantURLs(t, servedWithin(t, s, 2*time.Minute, one), "http://a.test/1")
}

// addressMoves moves a host while a client has a URL of it. Nothing more of it is given until then,
// and the pace of both addresses counts.
func addressMoves(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a1.test/2", "http://b.test/1", "http://b.test/2")...)
	more := one
	more.PerQueue = 2
	wantURLs(t, call(t, s, one), "http://a1.test/1", "http://b.test/1")
	n.set("a1.test", at("b"))
	for range 50 {
		time.Sleep(100 * time.Millisecond)
		for _, url := range call(t, s, more) {
			if url != "http://b.test/2" {
				t.Fatalf("%s is served while the host has a URL open at its former address", url)
			}
		}
	}
	ended(t, s, "http://b.test/1", "http://b.test/2")
	wantNothingFor(t, s, 10*time.Second)
	ended(t, s, "http://a1.test/1")
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://a1.test/2")
	add(t, s, urls("http://b.test/3", "http://a2.test/1")...)
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://a2.test/1") // the former address is free
	wantNothingFor(t, s, 5*time.Second)                                     // the new one is not
	ended(t, s, "http://a1.test/2")
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://b.test/3")
}

func addressSite(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	for _, host := range []string{"a.test", "b.test"} {
		a := at(host[:1])
		a.Site = "wiki"
		n.set(host, a)
	}
	add(t, s, urls("http://a.test/1", "http://b.test/1", "http://c.test/1")...)
	wantURLs(t, call(t, s, one), "http://a.test/1", "http://c.test/1")
	ended(t, s, "http://a.test/1")
	wantNothingFor(t, s, 1990*time.Millisecond)
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://b.test/1")
}

func addressNetwork(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	for i := range 6 {
		a := at("a")
		a.Network, a.AddressPace = "cdn", docindex.Pace{Gap: 500, Open: 3}
		if i > 2 {
			a.Addr = at("b").Addr
		}
		n.set(fmt.Sprintf("%d.test", i), a)
		add(t, s, urls(fmt.Sprintf("http://%d.test/1", i), fmt.Sprintf("http://%d.test/2", i))...)
	}
	var all []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		before := len(all)
		if all = append(all, call(t, s, one)...); len(all) > before+1 {
			t.Fatalf("%q are served at once", all[before:])
		}
	}
	if len(all) != 3 {
		t.Errorf("%q are served; want three, as many as may be open", all)
	}
	ended(t, s, all...)
	began := time.Now()
	all = nil
	for len(all) < 6 && time.Since(began) < time.Minute {
		got := call(t, s, one)
		ended(t, s, got...)
		all = append(all, got...)
		time.Sleep(20 * time.Millisecond)
	}
	if took := time.Since(began); took < 2500*time.Millisecond || took > 10*time.Second {
		t.Errorf("%d more are served in %v; want 6 in some 3s", len(all), took)
	}
}

func addressRaised(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	fast := func(gap int64) docindex.HostAddress {
		a := at("a")
		a.Raises, a.SitePace = true, docindex.Pace{Gap: gap, Open: 5}
		return a
	}
	n.set("a1.test", fast(200))
	n.set("a2.test", fast(400))
	add(t, s, urls("http://a1.test/1", "http://a2.test/1")...)
	first := append(call(t, s, one), servedWithin(t, s, 600*time.Millisecond, one)...)
	slices.Sort(first)
	wantURLs(t, first, "http://a1.test/1", "http://a2.test/1")
	add(t, s, urls("http://a3.test/1", "http://a3.test/2")...) // no rule makes its site faster
	ended(t, s, "http://a1.test/1", "http://a2.test/1")
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://a3.test/1")
	add(t, s, urls("http://a1.test/2")...)
	wantNothingFor(t, s, 5*time.Second)
	ended(t, s, "http://a3.test/1")
	servedWithin(t, s, 5*time.Second, one)
}

// addressBackoff has two sites fail, which makes their address back off, and then one succeed.
func addressBackoff(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	for i := range 5 {
		add(t, s, urls(fmt.Sprintf("http://a%d.test/1", i))...)
	}
	step := func(status int, gap time.Duration) {
		t.Helper()
		got := servedWithin(t, s, time.Minute, one)
		if len(got) != 1 {
			t.Fatalf("%q are served at once", got)
		}
		answer(t, s, got[0][len("http://"):len("http://a0.test")], status, 0)
		ended(t, s, got...)
		wantNothingFor(t, s, gap-10*time.Millisecond)
	}
	step(503, 2*time.Second)
	step(429, 4*time.Second)
	wantHeldBy(t, s, "a4.test", docindex.AddressWait, at("a").Addr.String(), "a0.test, a1.test")
	step(200, 2*time.Second)
	step(503, 4*time.Second) // the third site that fails within a minute
	servedWithin(t, s, 10*time.Second, one)
}

func addressTurns(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	const queues = 60
	for i := range queues {
		add(t, s, urls(fmt.Sprintf("http://a%d.test/1", i), fmt.Sprintf("http://a%d.test/2", i))...)
	}
	seen, last := map[string]int{}, time.Time{}
	for began := time.Now(); len(seen) < queues; time.Sleep(100 * time.Millisecond) {
		got := call(t, s, one)
		for _, url := range got {
			if len(got) > 1 || time.Since(last) < 2*time.Second {
				t.Fatalf("%q are served %v after the last one", got, time.Since(last))
			}
			last = time.Now()
			seen[url[:len(url)-1]]++
		}
		ended(t, s, got...)
		if time.Since(began) > 2*queues*2*time.Second {
			t.Fatalf("%d of %d queues had a turn in %v", len(seen), queues, time.Since(began))
		}
	}
}

func addressCrawls(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	for i := range 20 {
		add(t, s, crawled("x", fmt.Sprintf("http://a%d.test/1", i))...)
	}
	ofX, ofY := one, one
	ofX.AnyCrawl, ofX.Crawl = false, []byte("x")
	ofY.AnyCrawl, ofY.Crawl = false, []byte("y")
	got := call(t, s, ofX)
	for _, url := range got {
		p := crawled("x", url)[0]
		p.Update, p.Due = true, docindex.Never
		add(t, s, p)
	}
	add(t, s, crawled("y", "http://a1.test/2")...)
	wantURLs(t, servedWithin(t, s, 2*time.Minute, ofY), "http://a1.test/2")
}

func addressMixed(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, keyed("k", "http://a1.test/1", "http://a2.test/1")...)
	all := one
	all.PerQueue = 0
	wantURLs(t, call(t, s, all), "http://a1.test/1", "http://a2.test/1")
}

// briefUse is an address that others get as soon as a URL of it was chosen.
type briefUse struct {
	mu   sync.Mutex
	gone bool
	held bool // its lease lasts all the same: nothing new may be chosen
}

func (u *briefUse) Usable(int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.gone
}

func (u *briefUse) Holds() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.gone || u.held
}

func (u *briefUse) set(gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gone = gone
}

func (u *briefUse) Share(of docindex.Pace) docindex.Pace { return of }
func (u *briefUse) Gave()                                { u.set(true) }
func (u *briefUse) SetOpen(int, int64, int64)            {}

// addressGone loses an address between the choice of URLs and their leaving, as a process does that
// stands still. They count for nothing: when the address is back, they are given at once.
func addressGone(t *testing.T, s docindex.Store) {
	n, use := withAddresses(t, s), &briefUse{}
	a := at("a")
	a.Use = use
	n.set("a.test", a)
	add(t, s, urls("http://a.test/1", "http://a.test/2", "http://a.test/3")...)
	three := one
	three.PerQueue = 3
	wantURLs(t, call(t, s, three))
	if !use.gone {
		t.Fatal("no URL was chosen")
	}
	if c := Count(t, s, nil); c.InTransit != 0 {
		t.Errorf("%d URLs are in transit that did not leave", c.InTransit)
	}
	time.Sleep(10 * time.Second)
	use.set(false)
	for range 3 { // each time it goes to others again
		wantURLs(t, call(t, s, three))
		time.Sleep(3 * time.Second)
		use.set(false)
	}
	n.set("a.test", at("a"))
	s.SetAddresses(n.of)
	wantURLs(t, servedWithin(t, s, 3*time.Second, three), "http://a.test/1", "http://a.test/2", "http://a.test/3")
}

// addressGoneOften is addressGone with more URLs than a call is given at once.
func addressGoneOften(t *testing.T, s docindex.Store) {
	n, use := withAddresses(t, s), &briefUse{}
	a := at("a")
	a.Use = use
	n.set("a.test", a)
	var many []string
	for i := range 2500 {
		many = append(many, fmt.Sprintf("http://a.test/%04d", i))
	}
	add(t, s, urls(many...)...)
	all := one
	all.PerQueue = 0
	wantURLs(t, call(t, s, all))
	if c := Count(t, s, nil); c.InTransit != 0 {
		t.Errorf("%d URLs are in transit that did not leave", c.InTransit)
	}
	n.set("a.test", at("a"))
	s.SetAddresses(n.of)
	time.Sleep(3 * time.Second)
	if got := call(t, s, all); !slices.Equal(got, many) {
		t.Errorf("%d of %d are served when the address is back", len(got), len(many))
	}
}

// toldUse is a briefUse that keeps the longest time for which others were told to wait.
type toldUse struct {
	briefUse
	longest time.Duration
}

func (u *toldUse) SetOpen(_ int, next, _ int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.longest = max(u.longest, time.Until(time.UnixMilli(next)))
}

// addressGoneTells is addressGone for what is told to other daemons: they wait for no URL that has not
// left. A gap counts in any case, as a store may charge it before it asks.
func addressGoneTells(t *testing.T, s docindex.Store) {
	n, use := withAddresses(t, s), &toldUse{}
	a := at("a")
	a.Use = use
	n.set("a.test", a)
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("http://a.test/%02d", i))
	}
	add(t, s, urls(many...)...)
	all := one
	all.PerQueue = 0
	wantURLs(t, call(t, s, all))
	gap := time.Duration(twoSeconds.Gap) * time.Millisecond
	if !use.gone || use.longest >= 2*gap {
		t.Errorf("others were told to wait for %v", use.longest)
	}
	n.set("a.test", at("a"))
	s.SetAddresses(n.of)
	wantURLs(t, servedWithin(t, s, 2*gap, all), many...)
}

// addressTurnEnds ends the turn of clients at an address between the choice of a URL and its leaving. The
// lease lasts, so the URL is given.
func addressTurnEnds(t *testing.T, s docindex.Store) {
	n := withAddresses(t, s)
	a := at("a")
	a.Use = &briefUse{held: true}
	n.set("a.test", a)
	add(t, s, urls("http://a.test/1", "http://a.test/2")...)
	wantURLs(t, call(t, s, one), "http://a.test/1")
	ended(t, s, "http://a.test/1")
	wantNothingFor(t, s, 5*time.Second)
}

func deleteAll(t *testing.T, s docindex.Store) {
	t.Helper()
	if _, err := s.Delete(t.Context(), docindex.Scope{}); err != nil {
		t.Fatal(err)
	}
}

func purgeAll(t *testing.T, s docindex.Store) {
	t.Helper()
	if _, err := s.Purge(t.Context(), docindex.Scope{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// addressForgotten makes a store forget a URL that a client has. It counts at its address until its
// lease ends.
func addressForgotten(t *testing.T, s docindex.Store, forget func(*testing.T, docindex.Store)) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	forget(t, s)
	add(t, s, urls("http://a1.test/2", "http://a2.test/1")...)
	wantNothingFor(t, s, 59*time.Second)
	got := servedWithin(t, s, 5*time.Second, one)
	ended(t, s, got...)
	got = append(got, servedWithin(t, s, 5*time.Second, one)...)
	slices.Sort(got)
	wantURLs(t, got, "http://a1.test/2", "http://a2.test/1")
}

// addressReported is addressForgotten with two URLs, which the client reports. They count at their
// address until both are.
func addressReported(t *testing.T, s docindex.Store, forget func(*testing.T, docindex.Store)) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a1.test/2")...)
	two := one
	two.PerQueue = 2
	wantURLs(t, call(t, s, two), "http://a1.test/1", "http://a1.test/2")
	forget(t, s)
	add(t, s, urls("http://a2.test/1")...)
	wantNothingFor(t, s, 10*time.Second)
	ended(t, s, "http://a1.test/1")
	wantNothingFor(t, s, 10*time.Second)
	ended(t, s, "http://a1.test/2")
	wantURLs(t, servedWithin(t, s, 3*time.Second, one), "http://a2.test/1")
	ended(t, s, "http://a2.test/1")
	deleteAll(t, s)
}

// addressBecomesMixed puts a URL of another host into a queue of which a client has a URL. That
// counts at its address until it ends.
func addressBecomesMixed(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	add(t, s, keyed("a1.test", "http://c.test/1")...)
	add(t, s, urls("http://a2.test/1")...)
	wantNothingFor(t, s, 10*time.Second)
	ended(t, s, "http://a1.test/1")
	got := servedWithin(t, s, time.Second, one)
	for range 30 {
		time.Sleep(100 * time.Millisecond)
		got = append(got, call(t, s, one)...)
	}
	slices.Sort(got)
	wantURLs(t, got, "http://a2.test/1", "http://c.test/1")
}

// addressStopped stops a crawl of which a client has a URL.
func addressStopped(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	put(t, s, crawlPut("c", "http://a1.test/1", 1))
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	stopCrawl(t, s, "c", nil)
	add(t, s, urls("http://a2.test/1")...)
	wantNothingFor(t, s, 59*time.Second)
	wantURLs(t, servedWithin(t, s, 5*time.Second, one), "http://a2.test/1")
}

func addressOff(t *testing.T, s docindex.Store) {
	withAddresses(t, s)
	add(t, s, urls("http://a1.test/1", "http://a2.test/1", "http://a3.test/1")...)
	wantURLs(t, call(t, s, one), "http://a1.test/1")
	s.SetAddresses(nil)
	time.Sleep(time.Minute)
	got := call(t, s, one)
	slices.Sort(got)
	wantURLs(t, got, "http://a1.test/1", "http://a2.test/1", "http://a3.test/1")
}
