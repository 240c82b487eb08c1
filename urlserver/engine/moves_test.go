package engine

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/reservation"
	"urlserver/reservation/memory"
)

// sharing is an engine whose reservation is a store that others use, too, and whose look-ups give
// an address of its own.
type sharing struct {
	*testing.T
	e      *Engine
	store  reservation.Store
	spider uint32
	addr   netip.Addr
	addrs  map[string]netip.Addr // of hosts that are not at addr
	docs   int
	from   int
}

func newSharing(t *testing.T, store reservation.Store, addr netip.Addr, from int) *sharing {
	s := &sharing{T: t, store: store, addr: addr, from: from}
	cfg := configs.Default()
	cfg.ReqHostPerSec, cfg.Robots.Enabled = 1, false
	cached := func(host []byte) (netip.Addr, error, bool) {
		if addr, ok := s.addrs[string(host)]; ok {
			return addr, nil, true
		}
		return s.addr, nil, true
	}
	s.e = New(cfg, Options{Lease: lease, Cached: cached,
		CachedFor: func([]byte) time.Duration { return second }})
	s.e.Advance(second, start)
	s.spider = s.e.Connected("spider")
	return s
}

// reserve does what the engine asks of the store.
func (s *sharing) reserve() {
	c := s.e.Out.Leases
	if c == nil {
		return
	}
	s.e.Out.Leases = nil
	ctx := context.Background()
	for _, r := range c.Releases {
		release := reservation.Call{Verb: reservation.ReleaseHost, Host: r.Host, Token: r.Token, After: r.Next}
		s.store.Do(ctx, []reservation.Call{release})
	}
	for i := range c.Binds {
		b, ttl := &c.Binds[i], c.Binds[i].TTL
		if b.Ask {
			ttl = reservation.MinLease
		}
		bound, err := s.store.Bind(ctx, []reservation.Binding{{Host: b.Host, Group: b.Proposed}}, ttl)
		if err != nil {
			s.Fatal(err)
		}
		b.Group, b.Left = bound[0].Group, bound[0].Left
	}
	for i := range c.Extends {
		if _, err := s.store.ExtendHost(ctx, c.Extends[i].Host, c.Extends[i].Token, lease); err == nil {
			c.Extends[i].Answer = Granted
		} else {
			c.Extends[i].Answer = Denied
		}
	}
	for i := range c.Acquires {
		_, _ = s.store.AddHost(ctx, c.Acquires[i].Host, time.Time{})
		r, err := s.store.TryReserve(ctx, c.Acquires[i].Host, lease, fmt.Sprint(s.from))
		if c.Acquires[i].Answer = Denied; err == nil {
			c.Acquires[i].Answer, c.Acquires[i].Token, c.Acquires[i].Group = Granted, r.Token, r.Group
		}
	}
	s.e.LeasesAnswered(c)
}

// give has the engine take some more documents of the host.
func (s *sharing) give(documents int) { s.giveOf("moves.test", documents) }

func (s *sharing) giveOf(host string, documents int) {
	p := &Prepared{}
	for range documents {
		s.docs++
		p.Batch.Add(fmt.Append(nil, s.from, "-", s.docs), fmt.Appendf(nil, "http://%s/%d", host, s.docs), 0)
	}
	p.Prepare()
	s.e.Answered(p)
}

// step does what is due, and returns where lines went. They end at once. With gives there is a
// document at hand.
func (s *sharing) step(now time.Duration, gives bool) (addrs []netip.Addr) {
	s.work(now, gives)
	return endAll(s.T, s.e, s.spider)
}

// work is step without the end of the lines.
func (s *sharing) work(now time.Duration, gives bool) {
	s.e.Advance(now, start.Add(now))
	if gives && s.e.slots.Counts().Held == 0 && s.e.intake.batch == nil {
		s.give(1)
	}
	for range 5 {
		s.e.Step(nil)
		s.reserve()
	}
}

// TestHostMovesForAllDaemons has several daemons with documents of one host, in turns of half a
// minute, so that there are some all the time; a single daemon has them all the time. The host's
// address changes, for each of them somewhat later. All go on at the new one within the TTL of the
// binding, and none asks the old one after the first that has asked the new one.
func TestHostMovesForAllDaemons(t *testing.T) {
	was, is := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for _, daemons := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(daemons), func(t *testing.T) {
			now := second
			store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
			var all []*sharing
			for n := range daemons {
				all = append(all, newSharing(t, store, was, n))
			}
			at, first, lines := map[netip.Addr]int{}, time.Duration(0), map[int]int{}
			change := 3 * bindLeases * lease
			for ; now < change+4*bindLeases*lease; now += second / 4 {
				for n, s := range all {
					if now == change+time.Duration(n)*second*5 {
						s.addr = is
					}
					for _, addr := range s.step(now, int(now/(30*second))%daemons == n) {
						at[addr]++
						if addr == is {
							lines[n]++
							if first == 0 {
								first = now
							}
						} else if first > 0 {
							t.Fatalf("daemon %d asks the old address at %v; the new one was asked at %v", n, now, first)
						}
					}
				}
			}
			last := change + time.Duration(daemons-1)*5*second
			if first == 0 || first > last+bindLeases*lease+lease {
				t.Errorf("the new address is asked from %v on; the address changed at %v, for the last "+
					"daemon at %v", first, change, last)
			}
			if at[was] < 100 || len(lines) != daemons {
				t.Errorf("lines: %v to the addresses, %v to the new one by daemon; want all daemons to work", at, lines)
			}
		})
	}
}

// TestDaemonsThatFindOtherAddresses: one daemon finds another address than the others for good.
// Each has documents for six leases at a time. Both work, at the address that is bound, without a
// pause.
func TestDaemonsThatFindOtherAddresses(t *testing.T) {
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	all := []*sharing{newSharing(t, store, a, 0), newSharing(t, store, b, 1)}
	lines, last, longest := map[int]int{}, now, time.Duration(0)
	for ; now < 20*bindLeases*lease; now += second / 4 {
		for n, s := range all {
			for _, addr := range s.step(now, int(now/(6*lease))%len(all) == n) {
				if lines[n]++; addr != a {
					t.Fatalf("at %v daemon %d asks %v; the host is bound to %v", now, n, addr, a)
				}
				longest, last = max(longest, now-last), now
			}
		}
	}
	if lines[0] < 100 || lines[1] < 100 {
		t.Errorf("lines by daemon: %v; want some hundreds each", lines)
	}
	if most := 2 * lease; longest > most {
		t.Errorf("nothing was sent for %v; %v is allowed", longest, most)
	}
}

// TestAddressesThatRotate: each look-up gives another one of three addresses. The host stays where
// it is bound, as one look-up of three confirms that.
func TestAddressesThatRotate(t *testing.T) {
	now := second
	s := newSharing(t, memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }}), netip.Addr{}, 0)
	at, last, longest := map[netip.Addr]int{}, now, time.Duration(0)
	for ; now < 20*bindLeases*lease; now += second / 4 {
		s.addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(now / second % 3)})
		for _, addr := range s.step(now, true) {
			at[addr]++
			longest, last = max(longest, now-last), now
		}
	}
	if len(at) != 1 || longest > 2*lease {
		t.Errorf("lines by address: %v; nothing was sent for %v; want one address, and %v at most", at, longest,
			2*lease)
	}
}

// shares puts a rule in force that makes 198.51.100.0/24 a shared network.
func (s *sharing) shares() {
	cfg := s.e.cfg
	cfg.Rules = []configs.HostRule{{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, Shared: true,
		PerSec: 20, Concurrent: 8}}
	s.e.Reconfigure(cfg)
}

// TestSiteThatOneDaemonFindsOnASharedNetwork: one daemon finds a site on a shared network, the other
// one at an address of its own. Each has documents for some leases at a time. The site never waits
// for much longer than two leases, and is never asked within its gap.
func TestSiteThatOneDaemonFindsOnASharedNetwork(t *testing.T) {
	for _, period := range []time.Duration{lease, 6 * lease} {
		for first := range 2 { // the daemon that has documents first
			t.Run(fmt.Sprint(period, first), func(t *testing.T) {
				now := second
				store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
				all := []*sharing{newSharing(t, store, netip.MustParseAddr("198.51.100.1"), 0),
					newSharing(t, store, netip.MustParseAddr("192.0.2.2"), 1)}
				lines, last, longest := map[int]int{}, now, time.Duration(0)
				waited := time.Duration(0)
				for _, s := range all {
					s.shares()
				}
				for since := now; now < 20*bindLeases*lease; now += second / 4 {
					for n, s := range all {
						for range s.step(now, int(now/period+time.Duration(first))%len(all) == n) {
							if lines[n]++; now-last < second && lines[0]+lines[1] > 1 {
								t.Fatalf("at %v the site is asked %v after the last time", now, now-last)
							}
							longest, last = max(longest, now-last), now
						}
					}
					if all[1].e.slots.Counts().Held == 0 || lines[1] > 0 {
						since = now
					}
					waited = max(waited, now-since)
				}
				if lines[0] < 100 || lines[1] < 100 {
					t.Errorf("lines by daemon: %v; want some hundreds each", lines)
				}
				if most := 3 * lease; longest > most {
					t.Errorf("nothing was sent for %v; %v is allowed", longest, most)
				}
				if most := 5 * lease; waited > most {
					t.Errorf("the second daemon waited %v for the site; %v is allowed", waited, most)
				}
			})
		}
	}
}

// TestBindingEndsWhileADaemonStandsStill: a daemon asks whether a site is still bound to an address,
// and stands still until it is not. It finds the site on a shared network by now, so it binds it to
// itself, and asks nothing at the former address.
func TestBindingEndsWhileADaemonStandsStill(t *testing.T) {
	was, is := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("198.51.100.1")
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	s := newSharing(t, store, was, 0)
	s.shares()
	s.give(3)
	for len(s.step(now, false)) == 0 {
		now += second / 4
	}
	s.addr = is
	now += lease / 4
	s.e.Advance(now, start.Add(now))
	s.e.Step(nil)
	if addrs := endAll(t, s.e, s.spider); len(addrs) != 1 || addrs[0] != was {
		t.Fatalf("while the binding holds the daemon asks %v; want %v", addrs, was)
	}
	s.e.Step(nil)
	if c := s.e.Out.Leases; c == nil || len(c.Binds) != 1 || !c.Binds[0].Ask {
		t.Fatalf("the reservation is asked %+v; want whether the binding holds", c)
	}
	now += 2 * bindLeases * lease
	s.e.Advance(now, start.Add(now))
	s.reserve()
	var addrs []netip.Addr
	for until := now + lease; now < until && len(addrs) == 0; now += second / 4 {
		addrs = s.step(now, false)
	}
	if len(addrs) != 1 || addrs[0] != is {
		t.Errorf("the site is bound to itself, and the daemon asks it at %v; want %v", addrs, is)
	}
}

// TestHostGetsAnAlias: a host that a daemon asks gets an alias, which another host has, too. From the
// next lease on the daemon asks it only while nobody can lease the other one.
func TestHostGetsAnAlias(t *testing.T) {
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	s := newSharing(t, store, netip.MustParseAddr("192.0.2.2"), 0)
	s.give(20)
	if _, err := store.AddHost(t.Context(), "other.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	lines := 0
	ask := func(until time.Duration) {
		for ; now < until; now += second / 4 {
			if len(s.step(now, false)) == 0 {
				continue
			}
			lines++
			if r, err := store.TryReserve(t.Context(), "other.test", lease, "another"); err == nil {
				t.Fatalf("at %v another crawler leases %s as %s while moves.test is asked", now, r.Host, r.Group)
			}
		}
	}
	for len(s.step(now, false)) == 0 {
		now += second / 4
	}
	if err := store.SetAlias(t.Context(), "shop", []string{"moves.test", "other.test"}); err != nil {
		t.Fatal(err)
	}
	ask(now + lease/2)
	now += 2 * lease // the daemon stands still, and its lease ends
	ask(now + lease/2)
	if lines < 10 {
		t.Errorf("%d lines after the alias was set; want 10 at least", lines)
	}
}

// TestHostLeavesAnAlias: a daemon has two hosts in the group of an alias. One leaves the alias, and
// another host joins it. The daemon asks the other one only while nobody can lease the new one.
func TestHostLeavesAnAlias(t *testing.T) {
	for _, docs := range []int{1, 20} { // of the host that leaves: it has none then, or some
		now, ctx := second, t.Context()
		store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
		alias := func(host string) {
			if err := store.SetAlias(ctx, "shop", []string{host, "moves.test"}); err != nil {
				t.Fatal(err)
			}
		}
		alias("leaves.test")
		s := newSharing(t, store, netip.MustParseAddr("192.0.2.2"), 0)
		s.giveOf("leaves.test", docs)
		for len(s.step(now, false)) == 0 {
			now += second / 4
		}
		s.give(20)
		for until := now + lease/2; now < until; now += second / 4 {
			s.step(now, false)
		}
		if _, err := store.AddHost(ctx, "joins.test", time.Time{}); err != nil {
			t.Fatal(err)
		}
		alias("joins.test")
		now += 2 * lease // the daemon stands still, and its lease ends
		lines, before := 0, s.e.slots.Host(s.e.slots.FindHost([]byte("moves.test"))).Docs()
		for until := now + 2*lease; now < until; now += second / 4 {
			s.step(now, false)
			left := s.e.slots.Host(s.e.slots.FindHost([]byte("moves.test"))).Docs()
			if left == before {
				continue
			}
			before, lines = left, lines+1
			if r, err := store.TryReserve(ctx, "joins.test", lease, "another"); err == nil {
				t.Fatalf("at %v another crawler leases %s as %s while moves.test is asked", now, r.Host, r.Group)
			}
		}
		if lines < 5 {
			t.Errorf("%d lines of moves.test after the alias was set; want 5 at least", lines)
		}
	}
}

// TestManyHostsLeaveAnAlias: a daemon has many hosts in the group of an alias, and all but one leave it. It
// asks the one soon, though each of the others has to be taken out of the group.
func TestManyHostsLeaveAnAlias(t *testing.T) {
	const leave = 20
	for _, docs := range []int{1, 3} { // of each host that leaves: it has none then, or some
		now, ctx := second, t.Context()
		store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
		hosts := []string{"moves.test"}
		for i := range leave {
			hosts = append(hosts, fmt.Sprintf("h%d.test", i))
		}
		if err := store.SetAlias(ctx, "shop", hosts); err != nil {
			t.Fatal(err)
		}
		s := newSharing(t, store, netip.MustParseAddr("192.0.2.2"), 0)
		for _, host := range hosts[1:] {
			for s.giveOf(host, docs); s.e.intake.batch != nil; now += second / 4 {
				s.step(now, false)
			}
		}
		for docs == 1 && s.e.slots.Counts().Held > 0 && now < 1000*second {
			s.step(now, false)
			now += second / 4
		}
		s.give(10)
		for range 8 {
			s.step(now, false)
			now += second / 4
		}
		if err := store.SetAlias(ctx, "shop", []string{"moves.test", "joins.test"}); err != nil {
			t.Fatal(err)
		}
		now += 2 * lease // the daemon stands still, and its lease ends
		left := func() int { return s.e.slots.Host(s.e.slots.FindHost([]byte("moves.test"))).Docs() }
		began, was := now, left()
		for ; left() == was; now += second / 4 {
			if s.step(now, false); now > began+2*lease {
				t.Fatalf("%d documents each: moves.test is not asked within %v", docs, now-began)
			}
		}
	}
}

// TestNetworkThatBecomesShared: a rule makes a network shared on which a host is bound to its
// address. The host goes on at once, and is a group by itself when that binding has ended.
func TestNetworkThatBecomesShared(t *testing.T) {
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	s := newSharing(t, store, netip.MustParseAddr("198.51.100.1"), 0)
	const changed = bindLeases * lease
	last, longest := now, time.Duration(0)
	for ; now < 4*changed; now += second / 4 {
		if now == changed {
			s.shares()
		}
		for range s.step(now, true) {
			longest, last = max(longest, now-last), now
		}
	}
	if most := 3 * lease; longest > most {
		t.Errorf("nothing was sent for %v; %v is allowed", longest, most)
	}
	if x, err := store.Explain(t.Context(), "moves.test"); err != nil || x.Group != "moves.test" {
		t.Errorf("at last the store has %+v, %v; want the host in its own group", x, err)
	}
}
