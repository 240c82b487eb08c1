package redis

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// addressUse says whether a daemon has the lease of an address.
type addressUse bool

func (u addressUse) Usable(int) bool                      { return bool(u) }
func (u addressUse) Holds() bool                          { return bool(u) }
func (u addressUse) Share(of docindex.Pace) docindex.Pace { return of }
func (u addressUse) Gave()                                {}
func (u addressUse) SetOpen(int, int64, int64)            {}

// TestAddressOfAnotherDaemon has two daemons on one index, and an address that is leased to one of
// them. The clients of the other one are given nothing, and hold up nobody, not even for a moment: the
// address has its pace.
func TestAddressOfAnotherDaemon(t *testing.T) {
	d := newDaemons(t)
	owner, other := d.start(), d.start()
	pace := docindex.Pace{Gap: 2000, Open: 1}
	for s, use := range map[*Store]addressUse{owner: true, other: false} {
		s.SetAddresses(func([]byte) docindex.HostAddress {
			return docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace,
				AddressPace: pace, Use: use}
		})
	}
	put(t, owner, 12)
	for gap := range 5 {
		d.pass(2100 * time.Millisecond)
		if urls := served(t, other); len(urls) > 0 {
			t.Fatalf("%q are served by a daemon without the lease", urls)
		}
		urls := served(t, owner)
		if len(urls) != 1 {
			t.Fatalf("after gap %d, %q are served by the daemon with the lease; want one", gap, urls)
		}
		reportFetched(t, owner, urls[0])
	}
}

// openQueues is the use of an address by this daemon alone. It keeps how many queues clients have URLs
// of there.
type openQueues struct {
	addressUse
	n atomic.Int64
}

func (u *openQueues) SetOpen(queues int, _, _ int64) { u.n.Store(int64(queues)) }

// openAddress makes a store keep the pace of an address, where all hosts are, with at most so many
// open requests.
func openAddress(s *Store, most int) *openQueues {
	use := &openQueues{addressUse: true}
	pace := docindex.Pace{Gap: 1000, Open: most}
	s.SetAddresses(func([]byte) docindex.HostAddress {
		return docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace,
			AddressPace: pace, Use: use}
	})
	return use
}

// served returns the URLs that one call gives a client: at most one.
func served(t *testing.T, s *Store) (urls []string) {
	r := docindex.Request{AnyCrawl: true, PerQueue: 1, MaxQueues: 1, Lease: testLease}
	err := s.Serve(t.Context(), r, func(h *docindex.Served) error {
		for i := range h.Len() {
			urls = append(urls, string(h.At(i).URL))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return urls
}

// clientWithURL returns a store of which a client has a URL, the only one at its address.
func clientWithURL(t *testing.T) (s *Store, use *openQueues, url string) {
	t.Helper()
	d := newDaemons(t)
	s = d.start()
	use = openAddress(s, 1)
	d.pass(2 * time.Second)
	put(t, s, 2)
	urls := served(t, s)
	if len(urls) != 1 || use.n.Load() != 1 {
		t.Fatalf("%q are served, %d queues open; want one each", urls, use.n.Load())
	}
	return s, use, urls[0]
}

// TestReportFreesTheAddress has a client report its URL and ask for nothing more: the address is free
// for others.
func TestReportFreesTheAddress(t *testing.T) {
	s, use, url := clientWithURL(t)
	reportFetched(t, s, url)
	s.sweep(t.Context())
	if n := use.n.Load(); n != 0 {
		t.Errorf("%d queues are open after a heartbeat; want none", n)
	}
}

// TestLookThatFails: Redis does not answer whether clients have URLs of a queue still, so the heartbeat
// asks again.
func TestLookThatFails(t *testing.T) {
	s, use, url := clientWithURL(t)
	reportFetched(t, s, url)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if s.closeQueues(gone) == nil {
		t.Fatal("no error of a call whose caller has gone")
	}
	s.sweep(t.Context())
	if n := use.n.Load(); n != 0 {
		t.Errorf("%d queues are open after a heartbeat; want none", n)
	}
}

// TestGivenWhileAQueueIsLookedAt has a client take a URL of a queue after Redis has said that clients
// have none of it, and before that answer arrives: the queue stays open.
func TestGivenWhileAQueueIsLookedAt(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	use := openAddress(s, 2)
	d.pass(2 * time.Second)
	putURLs(t, s, "", "http://h.test/1", "http://h.test/2")
	first := served(t, s)
	if len(first) != 1 {
		t.Fatalf("%q are served; want one", first)
	}
	d.pass(2 * time.Second)
	given := make(chan []string, 1)
	after(t, s, outScript, func([]rueidis.RedisResult) { given <- served(t, s) })
	reportFetched(t, s, first[0])
	s.sweep(t.Context())
	if second := <-given; len(second) != 1 || use.n.Load() != 1 {
		t.Errorf("%q are served, %d queues open; want one each", second, use.n.Load())
	}
}

// TestReportedWhileAQueueIsLookedAt has another call look which queues clients have no URL of any more,
// when a client's report has not come to Redis yet: the queue is looked at again.
func TestReportedWhileAQueueIsLookedAt(t *testing.T) {
	s, use, url := clientWithURL(t)
	looked := false
	before(t, s, putScript, func() {
		looked = true
		if err := s.closeQueues(t.Context()); err != nil {
			t.Error(err)
		}
	})
	reportFetched(t, s, url)
	if !looked {
		t.Fatal("the report was stored without the script")
	}
	s.sweep(t.Context())
	if n := use.n.Load(); n != 0 {
		t.Errorf("%d queues are open after a heartbeat; want none", n)
	}
}

// TestGivenAfterItsLease has a call stand still between the choice of a URL and its leaving, until its
// lease ends and another call forgets the queue: the URL is not given.
func TestGivenAfterItsLease(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	openAddress(s, 1)
	d.pass(2 * time.Second)
	put(t, s, 1)
	stood := false
	after(t, s, serveScript, func([]rueidis.RedisResult) {
		stood = true
		d.pass(2 * testLease)
		if err := s.closeQueues(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if urls := served(t, s); len(urls) > 0 || !stood {
		t.Fatalf("%q are served after their lease; want none", urls)
	}
	d.pass(2 * testLease)
	if urls := served(t, s); len(urls) != 1 {
		t.Errorf("%q are served later; want one", urls)
	}
}

// TestEachPortionCounts gives a client more URLs of one queue than fit into a portion: its address waits
// for all of them.
func TestEachPortionCounts(t *testing.T) {
	const many = 2*portion + portion/2
	d := newDaemons(t)
	s := d.start()
	if err := s.Set(t.Context(), docindex.Setting{Kind: docindex.SetDelay}); err != nil {
		t.Fatal(err)
	}
	openAddress(s, 2)
	d.pass(2 * time.Second)
	var all []string
	for i := range many {
		all = append(all, fmt.Sprintf("http://h.test/%d", i))
	}
	putURLs(t, s, "", all...)
	got, portions := 0, 0
	err := s.Serve(t.Context(), docindex.Request{AnyCrawl: true, Lease: 2 * many * time.Second},
		func(h *docindex.Served) error {
			got += h.Len()
			portions++
			return nil
		})
	if err != nil || got != many || portions < 2 {
		t.Fatalf("%d URLs are served in %d portions, %v; want %d in some", got, portions, err, many)
	}
	putURLs(t, s, "", "http://other.test/")
	d.pass((many - 5) * time.Second) // the gap is one second
	if urls := served(t, s); len(urls) > 0 {
		t.Fatalf("%q are served before all gaps are over", urls)
	}
	d.pass(10 * time.Second)
	if urls := served(t, s); len(urls) != 1 {
		t.Errorf("%q are served after all gaps; want one", urls)
	}
}

// TestForgottenOfAnotherCrawl purges a URL that a client has. Another crawl's queue on the host is closed
// when the URLs of both are reported.
func TestForgottenOfAnotherCrawl(t *testing.T) {
	d := newDaemons(t)
	s := d.start()
	use := openAddress(s, 2)
	d.pass(2 * time.Second)
	of := func(crawl string) docindex.Put {
		return docindex.Put{URL: []byte("http://h.test/" + crawl), Crawl: []byte(crawl)}
	}
	store := func(p docindex.Put) {
		var all docindex.Puts
		if err := all.Add(p); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
	}
	for _, crawl := range []string{"c", "d"} {
		store(of(crawl))
		if urls := served(t, s); len(urls) != 1 {
			t.Fatalf("%q are served; want one", urls)
		}
		d.pass(2 * time.Second)
	}
	c := docindex.Scope{Crawl: []byte("c")}
	if n, err := s.Purge(t.Context(), c, time.Unix(d.unix()+3600, 0)); n != 1 || err != nil {
		t.Fatalf("%d URLs are purged, %v; want one", n, err)
	}
	for _, crawl := range []string{"d", "c"} {
		if use.n.Load() != 2 {
			t.Fatalf("%d queues are open before %s is reported; want both", use.n.Load(), crawl)
		}
		p := of(crawl)
		p.Update, p.Due = true, docindex.Never
		store(p)
		s.sweep(t.Context())
	}
	if n := use.n.Load(); n != 0 {
		t.Errorf("%d queues are open after both reports; want none", n)
	}
}

// reportFetched reports a URL as fetched by a client.
func reportFetched(t *testing.T, s *Store, url string) {
	t.Helper()
	var p docindex.Puts
	if err := p.Add(docindex.Put{URL: []byte(url), Update: true, Due: docindex.Never}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}
