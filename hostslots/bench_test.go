package hostslots

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// crowd is slots with sites that each have one document all the time.
type crowd struct {
	s      *Slots
	now    time.Duration
	id     uint64
	bySite map[uint32]int // documents sent, if it is not nil
}

func benchConfig(slots int) Config {
	return Config{
		Count: slots, Len: 64, Concurrent: 1, Gap: time.Microsecond, StatusTimeout: 2 * time.Minute,
		MaxAttempts: 3, Patience: time.Minute, RejectOver: 256, Remember: 1 << 18,
	}
}

// addSites adds sites at an address.
func (c *crowd) addSites(from, n int, addr func(i int) netip.Addr) (origins []uint32) {
	for i := from; i < from+n; i++ {
		name := fmt.Appendf(nil, "host-%07d.example", i)
		o := c.s.EnsureOrigin(append([]byte("http://"), name...), name)
		c.s.Host(c.s.HostOf(o)).Bind(c.now, Place{Addr: addr(i)})
		origins = append(origins, o)
	}
	return origins
}

func addrNo(i int) netip.Addr {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], uint32(i)+10<<24)
	return netip.AddrFrom4(a)
}

func (c *crowd) offer(origin uint32) {
	c.id++
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], c.id)
	c.s.Offer(c.now, Candidate{Origin: origin, ID: id[:],
		URL: []byte("http://host-0000000.example/some/path/of/usual/length/page-000000.html")})
}

// next sends the next document, which ends at once, and offers another one of its site.
func (c *crowd) next() bool {
	t, _, ok := c.s.Next(c.now)
	if !ok {
		return false
	}
	trans := c.s.Send(c.now, t, 1)
	c.s.End(c.now, c.s.Done(c.now, trans, 200, 0))
	c.offer(t.Origin)
	if c.bySite != nil {
		c.bySite[t.Group]++
	}
	return true
}

// BenchmarkRound reports the processor time of a document's whole way through the slots: addresses
// with one site each, and one address with many sites.
func BenchmarkRound(b *testing.B) {
	for _, c := range []struct {
		name         string
		slots, sites int
		addr         func(i int) netip.Addr
		siteGap      time.Duration
	}{
		{"10,000 addresses with a site each", 10_000, 10_000, addrNo, 0},
		{"an address with 10,000 sites", 10_000, 10_000, func(int) netip.Addr { return addrNo(0) }, 0},
		{"an address with 10,000 sites that are slower", 10_000, 10_000, func(int) netip.Addr { return addrNo(0) },
			5 * time.Millisecond},
		{"an address with 1,000,000 sites that are slower", 10_000, 1_000_000,
			func(int) netip.Addr { return addrNo(0) },
			500 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			cfg := benchConfig(c.slots)
			cfg.SiteGap = c.siteGap
			w := &crowd{s: New(cfg), now: time.Second}
			for _, o := range w.addSites(0, c.sites, c.addr) {
				w.offer(o)
			}
			step := func(n int) {
				for range n {
					w.now += 10 * time.Microsecond
					if !w.next() {
						b.Fatal("nothing is due")
					}
				}
			}
			step(2 * c.sites)
			b.ReportAllocs()
			b.ResetTimer()
			began := cpuTime()
			step(b.N)
			b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
