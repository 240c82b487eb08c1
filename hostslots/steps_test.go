package hostslots

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// filled returns slots with so many groups, each with one host that has a document.
func filled(cfg Config, groups int) *Slots {
	s := New(cfg)
	for n := range groups {
		name := fmt.Appendf(nil, "h%d.test", n)
		url := fmt.Appendf(nil, "http://%s/", name)
		o := s.EnsureOrigin(url[:len(url)-1], name)
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], uint32(n)+10<<24)
		s.Host(s.HostOf(o)).Bind(0, Place{Addr: netip.AddrFrom4(addr)})
		s.Offer(0, Candidate{Origin: o, ID: name, URL: url, Priority: 0})
	}
	return s
}

func usualConfig(count int) Config {
	return Config{Count: count, Len: 8, Concurrent: 1, Gap: time.Second, StatusTimeout: time.Hour, MaxAttempts: 3,
		MaxDelay: time.Minute, Patience: time.Minute, RejectOver: 1000, Remember: 1 << 20}
}

// sendable sends the documents that may be sent now, and counts them.
func sendable(s *Slots, now time.Duration) (n int) {
	for {
		t, _, ok := s.Next(now)
		if !ok {
			return n
		}
		s.Send(now, t, 1)
		n++
	}
}

// settle calls Tick until changed settings are in force for all groups, and counts the calls.
func settle(s *Slots, now time.Duration) (ticks int) {
	for ; s.cfg.next != 0; ticks++ {
		if s.Wait(now) > 1 {
			panic("there is more to do, and nobody is told")
		}
		s.Tick(now)
	}
	return ticks
}

// TestReconfigureBitByBit: slower settings are in force for all groups at once, also for those that
// were due; quicker ones after some ticks, each of which looks at groupsAStep groups at most.
func TestReconfigureBitByBit(t *testing.T) {
	const groups = 10 * groupsAStep
	cfg := usualConfig(groups)
	s := filled(cfg, groups)
	now := 2 * time.Second // all are due
	cfg.Gap = 10 * time.Second
	s.Reconfigure(now, cfg)
	if s.cfg.next != groupsAStep+1 {
		t.Errorf("Reconfigure looked at groups up to %d; want %d", s.cfg.next, groupsAStep+1)
	}
	if n := sendable(s, now); n != 0 {
		t.Errorf("%d documents were sent %v after the start, with a gap of %v", n, now, cfg.Gap)
	}
	if _, _, ok := s.Next(cfg.Gap - 1); ok {
		t.Error("something may be sent before the gap is over")
	}
	now = 5 * time.Second
	cfg.Gap = time.Second
	s.Reconfigure(now, cfg)
	cfg.Gap = 2 * time.Second // the former change was not in force everywhere
	s.Reconfigure(now, cfg)
	if ticks := settle(s, now); ticks != groups/groupsAStep-1 {
		t.Errorf("the change was in force after %d ticks; want %d", ticks, groups/groupsAStep-1)
	}
	if n := sendable(s, now); n != groups {
		t.Errorf("%d documents may be sent; want %d", n, groups)
	}
}

// TestReconfigureLimits: room in slots, open requests and rejected hosts follow new settings, also
// when documents come and go meanwhile.
func TestReconfigureLimits(t *testing.T) {
	const groups = 3 * groupsAStep
	cfg := usualConfig(groups)
	s := filled(cfg, groups)
	last := uint32(groups)
	o := s.hosts.At(s.FindHost(fmt.Appendf(nil, "h%d.test", groups-1))).origins
	cfg.Len, cfg.Concurrent, cfg.Gap = 1, 4, time.Nanosecond
	s.Reconfigure(0, cfg)
	if s.Counts().Full == groups {
		t.Fatal("all groups were looked at at once")
	}
	for i := range 5 { // to a group that was not looked at
		s.Offer(0, Candidate{
			Origin: o, ID: fmt.Appendf(nil, "more%d", i), URL: []byte("http://x/"), Priority: 0,
		})
	}
	settle(s, 0)
	if c := s.Counts(); c.Full != groups || c.Leftover != 5 {
		t.Errorf("%+v; want all slots full, and 5 documents outside", c)
	}
	if n := sendable(s, time.Second); n != groups || s.groups.At(last).sent != 1 {
		t.Errorf("%d were sent, %d of the group with more; want one of each", n, s.groups.At(last).sent)
	}
	for i := range 5 {
		sendable(s, time.Second+time.Duration(i+1))
	}
	if sent := s.groups.At(last).sent; sent != 4 {
		t.Errorf("%d documents of a group are open; want Concurrent", sent)
	}
	cfg.Concurrent = 2
	s.Reconfigure(2*time.Second, cfg)
	if n := sendable(s, 2*time.Second); n != 0 {
		t.Errorf("%d more were sent; want none, as more than Concurrent are open", n)
	}
}

// TestInFlightMeanwhile: documents end and others are sent between the parts of a walk. Those in
// flight all the time are yielded, and none twice.
func TestInFlightMeanwhile(t *testing.T) {
	const groups = 100
	cfg := usualConfig(groups)
	s := filled(cfg, groups)
	if n := sendable(s, time.Second); n != groups {
		t.Fatal(n)
	}
	told := map[uint32]int{}
	now, next := time.Second, uint32(0)
	for more := true; more; more = next != 0 {
		next = s.InFlight(next, 10, time.Second, func(doc uint32) { told[doc]++ })
		now += 2 * time.Second
		for range 3 { // the oldest come back, and are sent again
			doc, _ := s.Lost(now, 1)
			if doc == 0 {
				t.Fatal("nothing was lost")
			}
		}
		sendable(s, now)
	}
	if len(told) < groups-3*groups/10 || len(told) > groups {
		t.Errorf("%d documents were told of %d", len(told), groups)
	}
	for doc, n := range told {
		if n != 1 {
			t.Errorf("document %d was told %d times", doc, n)
		}
	}
}

// TestRejectsAreBounded: an address has 50,000 known hosts, 100 of them with documents, beside 200
// full groups. Rejects yields the hosts with documents, all hosts of the full groups, and others as
// far as there is room; none twice.
func TestRejectsAreBounded(t *testing.T) {
	const crowd, busy, full = 50_000, 100, 200
	cfg := usualConfig(full + 1)
	cfg.Len, cfg.RejectOver = 1, busy-1
	s := New(cfg)
	put := func(host string, addr netip.Addr, doc bool) {
		o := s.EnsureOrigin([]byte("http://"+host), []byte(host))
		s.Host(s.HostOf(o)).Bind(0, Place{Addr: addr})
		if doc {
			s.Offer(0, Candidate{
				Origin: o, ID: []byte(host), URL: []byte("http://" + host + "/"), Priority: 0,
			})
		}
	}
	crowded := netip.MustParseAddr("192.0.2.1")
	for n := range crowd {
		put(fmt.Sprintf("c%d.test", n), crowded, n >= crowd-busy)
	}
	for n := range full {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})
		put(fmt.Sprintf("full%d.test", n), addr, true)
		put(fmt.Sprintf("beside%d.test", n), addr, false)
	}
	told := map[string]int{}
	s.Rejects(func(name []byte) { told[string(name)]++ })
	if len(told) != MaxRejects {
		t.Errorf("%d names; want %d", len(told), MaxRejects)
	}
	for name, n := range told {
		if n > 1 {
			t.Errorf("%s is told %d times", name, n)
		}
	}
	for n := range full {
		for _, name := range []string{fmt.Sprintf("full%d.test", n), fmt.Sprintf("beside%d.test", n)} {
			if told[name] != 1 {
				t.Errorf("%s is not told", name)
			}
		}
	}
	for n := crowd - busy; n < crowd; n++ {
		if name := fmt.Sprintf("c%d.test", n); told[name] != 1 {
			t.Errorf("%s has a document and is not told", name)
		}
	}
}

// cpuTime returns the processor time of this thread, which does not depend on the load of the
// machine.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkStepsAtAMillionGroups reports the longest time of a call and the 99th percentile.
func BenchmarkStepsAtAMillionGroups(b *testing.B) {
	const groups = 1 << 20
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cfg := usualConfig(groups)
	s := filled(cfg, groups)
	now := 2 * time.Second
	for range groups {
		turn, _, _ := s.Next(now)
		s.Send(now, turn, 1)
	}
	var took []time.Duration
	timed := func(do func()) {
		began := cpuTime()
		do()
		took = append(took, cpuTime()-began)
	}
	report := func(what string) {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)-1])/1e6, what+"-longest-ms")
		b.ReportMetric(float64(took[len(took)*99/100])/1e6, what+"-p99-ms")
		took = nil
	}
	for range b.N {
		cfg.Gap, cfg.Len = cfg.Gap+time.Second, cfg.Len%7+1
		timed(func() { s.Reconfigure(now, cfg) })
		for s.cfg.next != 0 {
			timed(func() { s.Tick(now) })
		}
	}
	report("Reconfigure")
	for next, more := uint32(0), true; more; more = next != 0 {
		timed(func() { next = s.InFlight(next, 1024, now, func(uint32) {}) })
	}
	report("AtSpiders")
}
