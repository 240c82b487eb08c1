package sim

import (
	"testing"
	"time"

	"urlserver/docindex"
)

// without is how much longer some documents may take than in a run without trouble.
const without = 1 / 0.95

// TestNeighboursKeepTheirPace crawls 1,000 sites at one address. One of them has a Crawl-delay of
// an hour, and one answers 503 with a Retry-After of an hour. The other 998 take no longer than
// without these two, which the oracle sees left alone as they ask.
func TestNeighboursKeepTheirPace(t *testing.T) {
	alone := crawlOneAddress(t, false)
	beside := crawlOneAddress(t, true)
	t.Logf("998 of 1,000 sites of an address took %v, and %v beside one with a "+
		"Crawl-delay and one that answers 503",
		alone, beside)
	if float64(beside) > without*float64(alone) {
		t.Errorf("998 sites took %v beside two with trouble, and %v without them", beside, alone)
	}
}

// crawlOneAddress returns how long it takes until the documents of hosts 2 to 999 have ended.
func crawlOneAddress(t *testing.T, trouble bool) time.Duration {
	t.Helper()
	sc := small(t, "healthy", seed())
	sc.Hosts, sc.Addresses, sc.Documents, sc.Scattered, sc.Day = 1000, 1, 5000, 0, 0
	sc.Trouble = Trouble{}
	c := &sc.Config
	c.QueueCount, c.QueueLen, c.DocIndex.Batch, c.Leftover.Max = 8, 64, 10_000, 100_000
	c.VHosts.RejectOver, c.Spider.MaxInFlight = 100_000, 1000
	c.ReqHostPerSec, c.ReqHostConcurrent = 20, 16
	c.Politeness.SitePerSec, c.Politeness.SiteConcurrent, c.Politeness.DelayFactor = 0.5, 1, 0
	r := newRun(sc)
	for i := range r.world.hosts {
		r.world.hosts[i] = site{name: hostName(uint32(i)), addrs: []uint32{0}}
		r.world.byName[hostName(uint32(i))] = uint32(i)
	}
	if trouble {
		r.world.hosts[0].robots, r.world.hosts[0].delay = robotsDelay, 3600
		r.world.hosts[1].closed = true
	}
	left := 0
	for i := range r.world.docs {
		r.world.docs[i].host, r.world.docs[i].kind = uint32(i%len(r.world.hosts)), public
		if r.world.docs[i].host > 1 {
			left++
		}
	}
	var took time.Duration
	r.ended = func(doc uint32) {
		if r.world.docs[doc].host > 1 {
			if left--; left == 0 {
				took = r.now
			}
		}
	}
	r.work()
	if r.oracle.complaint != nil {
		t.Fatal(r.oracle.complaint)
	}
	if n := r.oracle.report.Outcomes[docindex.Done]; n != sc.Documents || left > 0 {
		t.Fatalf("%d of %d documents are done, %d of the 998 sites are not", n, sc.Documents, left)
	}
	return took
}

// TestSharedNetworkWithRandomAddresses crawls 5,000 names on a shared network. Each look-up of a
// name gives one of 256 addresses, chosen at random. The network allows 20 open requests and 50 a
// second, a site one request in two seconds. The oracle sees that no site is asked too soon, or
// while it has another request; all documents are fetched, at nine tenths of the network's pace.
func TestSharedNetworkWithRandomAddresses(t *testing.T) {
	sc := small(t, "healthy", seed())
	sc.Hosts, sc.Addresses, sc.Documents, sc.Scattered, sc.Day = 5000, 256, 15_000, 0, 0
	sc.NameTTL, sc.Trouble, sc.Heal, sc.End = 5*time.Second, Trouble{Wander: 1}, time.Hour, 0
	c := &sc.Config
	c.QueueCount, c.QueueLen, c.DocIndex.Batch, c.Leftover.Max = 1000, 8, 10_000, 100_000
	c.ReqHostPerSec, c.ReqHostConcurrent = 0.5, 1
	c.Politeness.SitePerSec, c.Politeness.SiteConcurrent, c.Politeness.DelayFactor = 0, 0, 0
	c.Spider.MaxInFlight, c.Resolver.MinTTL = 1000, 0
	c.Rules = sharedRules(50, 20)
	r := newRun(sc)
	for i := range r.world.hosts {
		r.world.hosts[i].quick = true
	}
	r.work()
	if r.oracle.complaint != nil {
		t.Fatal(r.oracle.complaint)
	}
	report := &r.oracle.report
	done, robots := report.Outcomes[docindex.Done], report.Outcomes[docindex.Robots]
	if done < sc.Documents*9/10 || done+robots != sc.Documents {
		t.Errorf("outcomes %v of %d documents; want done, or robots", report.Outcomes, sc.Documents)
	}
	requests := report.Lines + report.Fetches
	least := time.Duration(requests) * time.Second / 50
	t.Logf("%d requests at 50 a second took %v of %v", requests, r.now, least)
	if most := least*10/9 + 10*time.Second; r.now < least-time.Second || r.now > most {
		t.Errorf("%d requests at 50 a second took %v; want %v to %v", requests, r.now, least, most)
	}
}
