package addresses_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/addresses"
	"urlserver/internal/container/timeheap"
)

// TestTurnsCost has many queues wait for one address. Each request costs a bounded number of looks
// at queues, and every queue has a turn before any has two.
func TestTurnsCost(t *testing.T) {
	const queues, gap = 20_000, 2000
	a := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"),
		SitePace:    docindex.Pace{Gap: gap, Open: 1},
		AddressPace: docindex.Pace{Gap: gap, Open: 1}}
	now := int64(1_000_000)
	table := addresses.New(now)
	now += gap
	var waiting timeheap.Heap
	look := func(id uint32) {
		at := table.MayFrom(id, now)
		waiting.Set(id, time.Duration(max(at, now)))
	}
	for i := range queues {
		id, _ := table.Bind(0, fmt.Appendf(nil, "h%d.test", i), &a, now)
		look(id)
	}
	looks, taken, last := 0, map[uint32]int{}, int64(0)
	for len(taken) < queues {
		id, at, _ := waiting.Min()
		now = max(now, int64(at))
		if looks++; looks > 4*(len(taken)+10) {
			t.Fatalf("%d looks for %d requests", looks, len(taken))
		}
		if table.MayFrom(id, now) > now || !table.Take(id, now) {
			look(id)
			continue
		}
		if now < last+gap || taken[id] > 0 {
			t.Fatalf("queue %d is taken for the %d. time %d ms after the last request", id, taken[id]+1, now-last)
		}
		table.Gave(id, now)
		table.Return(id)
		taken[id]++
		last = now
		waiting.Remove(id)
	}
	if took := now - 1_000_000; took > queues*gap*21/20 {
		t.Errorf("%d requests took %d ms; want about %d", queues, took, queues*gap)
	}
}

// TestForget forgets queues and with them what nobody needs any more.
func TestForget(t *testing.T) {
	table := addresses.New(0)
	pace := docindex.Pace{Gap: 1000, Open: 1}
	a := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace, AddressPace: pace}
	var before int64
	for round := range 3 {
		now := int64(round+1) * 1_000_000
		var ids []uint32
		for i := range 100 {
			id, _ := table.Bind(0, fmt.Appendf(nil, "r%d-%d.test", round, i), &a, now)
			if table.MayFrom(id, now) <= now && table.Take(id, now) {
				table.Gave(id, now)
			}
			ids = append(ids, id)
		}
		if round == 0 {
			before = table.Bytes()
		}
		for _, id := range ids {
			table.Forget(id, now)
		}
	}
	if got := table.Bytes(); got > 2*before {
		t.Errorf("the table has %d bytes after three rounds; it had %d in the first one", got, before)
	}
	id, _ := table.Bind(0, []byte("last.test"), &a, 9_000_000)
	if at := table.MayFrom(id, 9_000_000); at > 9_000_000 {
		t.Errorf("a queue may be taken in %d ms; nobody else is there", at-9_000_000)
	}
}

// TestWaitNamesTheLevel asks for one URL of a slow site beside another site: the slow one is held
// back by itself, the other one by the address or by the shared network.
func TestWaitNamesTheLevel(t *testing.T) {
	fast, slow := docindex.Pace{Gap: 1000, Open: 1}, docindex.Pace{Gap: 60_000, Open: 1}
	for _, c := range []struct {
		network string
		level   docindex.WaitLevel
		name    string
	}{{"", docindex.AddressWait, "192.0.2.1"}, {"net", docindex.NetworkWait, "net"}} {
		table := addresses.New(0)
		a := docindex.HostAddress{
			Addr: netip.MustParseAddr("192.0.2.1"), Network: c.network, AddressPace: fast,
		}
		bind := func(host string, pace docindex.Pace) uint32 {
			a.SitePace = pace
			id, _ := table.Bind(0, []byte(host), &a, 0)
			return id
		}
		one, other := bind("slow.test", slow), bind("quick.test", fast)
		check := func(id uint32, now int64, rule docindex.WaitRule, level docindex.WaitLevel, name string) {
			t.Helper()
			if _, _, w := table.Wait(id, now); w.Rule != rule || w.Level != level || w.Name != name {
				t.Errorf("%d ms: %+v; want rule %d, level %d, %q", now, w, rule, level, name)
			}
		}
		now := slow.Gap
		if table.MayFrom(one, now) > now || !table.Take(one, now) {
			t.Fatal("the slow site may not be asked after its gap")
		}
		table.Gave(one, now)
		check(other, now, docindex.WaitAddress, c.level, c.name)
		check(other, now+fast.Gap, docindex.WaitAddressInUse, c.level, c.name)
		table.Return(one)
		check(one, now, docindex.WaitAddress, docindex.SiteWait, "slow.test")
	}
}

// use records how many queues clients have URLs of at an address.
type use struct{ open int }

func (*use) Usable(int) bool                        { return true }
func (*use) Holds() bool                            { return true }
func (*use) Share(of docindex.Pace) docindex.Pace   { return of }
func (*use) Gave()                                  {}
func (u *use) SetOpen(queues int, _ int64, _ int64) { u.open = queues }

// TestOpenAtBoth: while clients have a URL of a host that has moved between an address and a shared
// network, it counts as open at both, and its last request does.
func TestOpenAtBoth(t *testing.T) {
	one := docindex.Pace{Gap: 1000, Open: 1}
	alone, shared := &use{}, &use{}
	at := map[bool]docindex.HostAddress{
		false: {Addr: netip.MustParseAddr("192.0.2.1"), SitePace: one, AddressPace: one, Use: alone},
		true: {Addr: netip.MustParseAddr("192.0.2.1"), Network: "net", SitePace: one, AddressPace: one,
			Use: shared},
	}
	for _, joins := range []bool{true, false} {
		from, to := at[!joins], at[joins]
		now, table := int64(1_000_000), addresses.New(0)
		a, _ := table.Bind(0, []byte("a.test"), &from, now)
		if !table.Take(a, now) {
			t.Fatal("a.test may not be taken")
		}
		table.Gave(a, now)
		if _, moving := table.Bind(a, []byte("a.test"), &to, now); !moving {
			t.Fatal("a.test moves while clients have a URL of it")
		}
		b, _ := table.Bind(0, []byte("b.test"), &to, now)
		if at := table.MayFrom(b, now+500); at < now+1000 {
			t.Errorf("joins a network: %t: b.test may be taken %d ms after a.test was; want 1000", joins, at-now)
		}
		if at := table.MayFrom(b, now+5000); at <= now+5000 || alone.open != 1 || shared.open != 1 {
			t.Errorf("joins a network: %t: b.test may be taken at %d while a.test is open; open %d, %d", joins, at,
				alone.open, shared.open)
		}
		table.Return(a)
		if at := table.MayFrom(b, now+9000); at > now+9000 || alone.open+shared.open != 0 {
			t.Errorf("joins a network: %t: b.test may be taken at %d, and a.test has ended; open %d, %d", joins, at,
				alone.open, shared.open)
		}
	}
}

// TestOpenAtBothSites: while clients have a URL of a host that has come into another site, it counts as
// open at both, also what is given out meanwhile.
func TestOpenAtBothSites(t *testing.T) {
	one, many := docindex.Pace{Gap: 1000, Open: 1}, docindex.Pace{Gap: 1, Open: 9}
	from := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: one, AddressPace: many}
	to, other := from, from
	to.Site, other.Site = "g", "g"
	other.Addr = netip.MustParseAddr("192.0.2.2")
	now, table := int64(1_000_000), addresses.New(0)
	a, _ := table.Bind(0, []byte("a.test"), &from, now)
	b, _ := table.Bind(0, []byte("b.test"), &other, now)
	if !table.Take(a, now) {
		t.Fatal("a.test may not be taken")
	}
	table.Gave(a, now)
	if _, moving := table.Bind(a, []byte("a.test"), &to, now); !moving {
		t.Fatal("a.test changes its site while clients have a URL of it")
	}
	if at := table.MayFrom(b, now+5000); at <= now+5000 {
		t.Errorf("b.test may be taken at %d while a.test is open", at)
	}
	table.Left(a, now+6000)
	table.Return(a)
	if table.Take(b, now+6500) || !table.Take(b, now+7000) {
		t.Error("the gap of b.test does not begin when a.test's last URL has left")
	}
}

// TestTakeBack takes back URLs of two queues at one address that have not left: in any order the
// address waits at least as long as the URLs ask for that did leave, and the last first as before.
func TestTakeBack(t *testing.T) {
	const gap = 1000
	pace := docindex.Pace{Gap: gap, Open: 5}
	a := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"), SitePace: pace, AddressPace: pace}
	for _, c := range []struct {
		name string
		back []int         // queues, in this order
		want time.Duration // since the first URL, until the address may be asked
	}{
		{"nothing", nil, 3 * gap},
		{"the first queue alone", []int{0}, 3 * gap},
		{"the second one alone", []int{1}, 2 * gap},
		{"both, the last first", []int{1, 0}, 0},
		{"both, the first first", []int{0, 1}, 2 * gap},
	} {
		table, now := addresses.New(0), int64(10*gap)
		var ids [2]uint32
		for i := range ids {
			ids[i], _ = table.Bind(0, fmt.Appendf(nil, "h%d.test", i), &a, now)
		}
		var before, after [2]addresses.Paid
		for i, urls := range []int{2, 1} {
			before[i] = table.Paid(ids[i])
			for range urls {
				table.Gave(ids[i], now)
			}
			after[i] = table.Paid(ids[i])
		}
		for _, i := range c.back {
			table.TakeBack(ids[i], &before[i], &after[i])
		}
		third, _ := table.Bind(0, []byte("third.test"), &a, now)
		if at := max(now, table.MayFrom(third, now)); at-now != int64(c.want) {
			t.Errorf("%s is taken back: the address may be asked after %dms; want %d", c.name, at-now, c.want)
		}
	}
}

// TestTakeBackKeepsBackoff has two sites of an address answer 429 while URLs are counted that do not
// leave then: the address backs off all the same.
func TestTakeBackKeepsBackoff(t *testing.T) {
	const gap = 2000
	a := docindex.HostAddress{Addr: netip.MustParseAddr("192.0.2.1"),
		SitePace:    docindex.Pace{Gap: gap, Open: 1},
		AddressPace: docindex.Pace{Gap: gap, Open: 1}}
	now := int64(1_000_000)
	table := addresses.New(0)
	id, _ := table.Bind(0, []byte("a.test"), &a, now)
	before := table.Paid(id)
	for range 20 { // they cost more than the backoff
		table.Gave(id, now)
	}
	after := table.Paid(id)
	for _, host := range []string{"b.test", "c.test"} {
		table.Bind(0, []byte(host), &a, now)
		table.Answered([]byte(host), true, now)
	}
	table.TakeBack(id, &before, &after)
	if from := table.MayFrom(id, now); from < now+2*gap {
		t.Errorf("the address may be asked in %d ms; want %d", from-now, 2*gap)
	}
}
