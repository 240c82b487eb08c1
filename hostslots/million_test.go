package hostslots

import (
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// firstDue is the gap of each site, and so when each of them may be requested first.
const firstDue = 2 * time.Second

// share is what an address with many sites and other addresses got in a time.
type share struct {
	many, others int           // documents sent
	timed        int           // of these, those sent after all sites had been due for a second
	cpu          time.Duration // for these
}

// serve runs slots with so many addresses of one site each for a while, beside an address with
// many sites that may be requested each gap. All have documents all the time.
func serve(tb testing.TB, addresses, sites int, gap, took time.Duration) share {
	tb.Helper()
	runtime.LockOSThread() // cpuTime is the thread's
	defer runtime.UnlockOSThread()
	cfg := benchConfig(addresses + 1)
	cfg.Gap, cfg.SiteGap = firstDue, firstDue
	w := &crowd{s: New(cfg), bySite: map[uint32]int{}}
	many := addrNo(addresses)
	origins := w.addSites(0, addresses, addrNo)
	if sites > 0 {
		origins = append(origins, w.addSites(addresses, sites, func(int) netip.Addr { return many })...)
		last := w.s.HostOf(origins[len(origins)-1])
		w.s.Host(last).SetPlaceLimits(0, Place{Addr: many, Address: AddressLimits{Gap: gap, Concurrent: 1}})
	}
	for _, o := range origins {
		w.offer(o)
	}
	w.runUntil(firstDue + time.Second)
	runtime.GC()
	before := w.sent()
	began := cpuTime()
	w.runUntil(took)
	s := share{cpu: cpuTime() - began, timed: w.sent() - before}
	for id, n := range w.bySite {
		if w.s.Group(id).Name() == many.String() {
			s.many += n
		} else {
			s.others += n
		}
	}
	return s
}

func (c *crowd) runUntil(end time.Duration) {
	for c.now < end {
		if !c.next() {
			_, wait, _ := c.s.Next(c.now)
			c.now += max(wait, 1)
		}
	}
}

func (c *crowd) sent() (n int) {
	for _, of := range c.bySite {
		n += of
	}
	return n
}

// TestManySitesHoldUpNobody: addresses with one site each are served as if an address with many
// sites were not there, and that address is at its pace.
func TestManySitesHoldUpNobody(t *testing.T) {
	const addresses, sites, gap, took = 500, 20_000, 2 * time.Millisecond, 20 * time.Second
	alone, beside := serve(t, addresses, 0, gap, took), serve(t, addresses, sites, gap, took)
	if beside.others != alone.others {
		t.Errorf("%d documents of other addresses were sent beside the address; %d without it",
			beside.others, alone.others)
	}
	if want := int((took - firstDue) / gap); beside.many < want*95/100 || beside.many > want+1 {
		t.Errorf("%d documents of the address with many sites; want %d", beside.many, want)
	}
}

// BenchmarkMillionSites reports how 100,000 addresses fare beside one with a million sites, and the
// memory of sites without documents.
func BenchmarkMillionSites(b *testing.B) {
	const addresses, sites, gap, took = 100_000, 1_000_000, time.Millisecond, 10 * time.Second
	for range b.N {
		alone := serve(b, addresses, 0, gap, took)
		runtime.GC()
		beside := serve(b, addresses, sites, gap, took)
		b.ReportMetric(float64(beside.others)/float64(alone.others), "share-of-others")
		b.ReportMetric(float64(beside.many)/float64((took-firstDue)/gap), "share-of-pace")
		b.ReportMetric(float64(alone.cpu)/float64(alone.timed), "cpu-ns/doc-alone")
		b.ReportMetric(float64(beside.cpu)/float64(beside.timed), "cpu-ns/doc-beside")
		b.ReportMetric(knownSites(sites), "bytes/known-site")
	}
}

// knownSites returns how many bytes each of so many sites of an address costs in the end that came
// one after the other and have no documents left.
func knownSites(sites int) float64 {
	var before, after runtime.MemStats
	cfg := benchConfig(16)
	w := &crowd{s: New(cfg), now: time.Second}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range sites {
		w.now += cfg.Gap
		o := w.addSites(i, 1, func(int) netip.Addr { return addrNo(0) })[0]
		w.offer(o)
		if t, _, ok := w.s.Next(w.now); ok {
			w.s.End(w.now, w.s.Done(w.now, w.s.Send(w.now, t, 1), 200, 0))
		}
		w.s.Tick(w.now)
		w.s.Forgotten(nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(sites)
}
