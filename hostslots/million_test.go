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
		b.ReportMetric(knownSites(benchConfig(16), oneAddress, sites)[0]/sites, "bytes/known-site")
	}
}

func oneAddress(int) netip.Addr { return addrNo(0) }

// TestKnownHostsAreBounded: hosts without documents take no more memory once there are more than
// Config.Remember of them.
func TestKnownHostsAreBounded(t *testing.T) {
	cfg := benchConfig(16)
	share := float64(cfg.Remember)
	cfg.Remember = 1 << 14
	share /= float64(cfg.Remember)
	bytes := knownSites(cfg, addrNo, cfg.Remember, 2*cfg.Remember)
	if bytes[1] > 1.01*bytes[0] || share*bytes[1] > maxKnown {
		t.Errorf("%d hosts take %.0f bytes, twice as many %.0f; want no more, and at most %.0f", cfg.Remember,
			bytes[0], bytes[1], maxKnown/share)
	}
}

const maxKnown = 256 << 20 // bytes, with Config.Remember as the daemon has it

// BenchmarkTenMillionHosts reports the memory of ten million hosts, each at its own address, that came
// one after the other and have no documents left.
func BenchmarkTenMillionHosts(b *testing.B) {
	for range b.N {
		b.ReportMetric(knownSites(benchConfig(16), addrNo, 10_000_000)[0]/(1<<20), "MiB")
	}
}

// knownSites returns how many bytes are in use when so many sites have come, one after the other, and
// have no documents left; of each number in turn.
func knownSites(cfg Config, at func(int) netip.Addr, sites ...int) (bytes []float64) {
	var before, after runtime.MemStats
	w := &crowd{s: New(cfg), now: time.Second}
	runtime.GC()
	runtime.ReadMemStats(&before)
	i := 0
	for _, n := range sites {
		for ; i < n; i++ {
			w.visit(cfg.Gap, i, at)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		bytes = append(bytes, float64(after.HeapAlloc)-float64(before.HeapAlloc))
	}
	runtime.KeepAlive(w)
	return bytes
}

// visit fetches the only document of a new site.
func (c *crowd) visit(gap time.Duration, i int, at func(int) netip.Addr) {
	c.now += gap
	o := c.addSites(i, 1, at)[0]
	c.offer(o)
	if t, _, ok := c.s.Next(c.now); ok {
		c.s.End(c.now, c.s.Done(c.now, c.s.Send(c.now, t, 1), 200, 0))
	}
	c.s.Tick(c.now)
	c.s.Forgotten(nil)
}
