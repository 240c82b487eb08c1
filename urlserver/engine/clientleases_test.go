package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/reservation"
	"urlserver/reservation/memory"
)

// clientParty is the clients of one daemon, who want a few addresses and a shared network.
type clientParty struct {
	l     *ClientLeases
	store reservation.Store
	name  string
}

// reserve does what the leases need.
func (p *clientParty) reserve(now time.Duration) {
	ctx := context.Background()
	for work, _ := p.l.Step(now); work != nil; work, _ = p.l.Step(now) {
		for _, r := range work.Releases {
			_ = p.store.ReleaseHost(ctx, r.Host, r.Token, start.Add(now+r.Next)) // stale: the lease had ended
		}
		for i := range work.Extends {
			c := &work.Extends[i]
			if c.Answer = Granted; !p.extended(c) {
				c.Answer = Denied
			}
		}
		for i := range work.Acquires {
			c := &work.Acquires[i]
			_, _ = p.store.AddHost(ctx, c.Host, time.Time{})
			r, err := p.store.TryReserve(ctx, c.Host, lease, p.name)
			if c.Answer, c.Token = Granted, r.Token; err != nil {
				c.Answer = Denied
			}
		}
		p.l.Answered(now, work)
	}
}

func (p *clientParty) extended(c *LeaseRequest) bool {
	_, err := p.store.ExtendHost(context.Background(), c.Host, c.Token, lease)
	return err == nil
}

// TestClientsOfDaemonsTakeTurns: the clients of two daemons always want the same addresses. They
// never have one at once, nor within a second after the others had URLs of it, and each has its
// turn. The slices of a shared network are never more than its cap.
func TestClientsOfDaemonsTakeTurns(t *testing.T) {
	const network, gap = "net", time.Second
	now, rnd := second, rand.New(rand.NewPCG(1, 2))
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	cap := configs.Pace{PerSec: 10, Concurrent: 8}
	var all []*clientParty
	for n := range 2 {
		p := &clientParty{l: NewClientLeases(lease, uint64(n)), store: store, name: fmt.Sprint(n)}
		p.l.SetNetworks(now, map[string]*configs.SharedNetwork{network: {Name: network, Pace: cap}})
		all = append(all, p)
	}
	type use struct {
		by   int
		open bool
		next time.Duration
	}
	uses, turns, shares := map[string]*use{}, map[string]int{}, [2]int{}
	for ; now < 100*lease; now += second / 4 {
		room := 0
		for n, p := range all {
			p.reserve(now)
			for i := range 3 {
				name := fmt.Sprintf("192.0.2.%d", i)
				u := uses[name]
				if u == nil {
					u = &use{}
					uses[name] = u
				}
				if u.open && u.by == n && rnd.IntN(3) == 0 {
					u.open, u.next = false, now+gap
					p.l.SetOpen(now, name, false, u.next)
				} else if p.l.Usable(now, name) && !u.open {
					if u.by != n && now < u.next {
						t.Fatalf("%v: party %d may use %s, %v too soon", now, n, name, u.next-now)
					}
					turns[fmt.Sprint(name, " by ", n)]++
					*u = use{by: n, open: true}
					p.l.SetOpen(now, name, true, now+gap)
				} else if u.open && u.by != n && p.l.Usable(now, name) {
					t.Fatalf("%v: party %d may use %s, which the other one uses", now, n, name)
				}
			}
			p.l.NetworkUsable(now, network, 5)
			_, open := p.l.Share(network)
			room += open
			shares[n] += open
		}
		if room > cap.Concurrent {
			t.Fatalf("%v: both parties may have %d open requests; want at most %d", now, room, cap.Concurrent)
		}
	}
	t.Log(turns, shares)
	if len(turns) != 6 || shares[0] == 0 || shares[1] == 0 {
		t.Errorf("turns %v, shares of the network %v; want both parties to have some of all", turns, shares)
	}
}

// TestClientsReachThePace: the clients of three daemons always want the same addresses, each of
// which may be asked once in a gap, and ask again each 20 ms. Together they use nine tenths of
// the gaps, whatever the gap, and each has its turns.
func TestClientsReachThePace(t *testing.T) {
	const addresses, leases, step = 3, 30, second / 50
	rnd := rand.New(rand.NewPCG(1, 3))
	for _, gap := range []time.Duration{second / 4, second, 2 * second, 5 * second} {
		now := second
		store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
		var all []*clientParty
		for n := range 3 {
			l := NewClientLeases(lease, uint64(n))
			all = append(all, &clientParty{l: l, store: store, name: fmt.Sprint(n)})
		}
		var next [addresses]time.Duration
		uses, by := 0, map[int]int{}
		for ; now < leases*lease; now += step {
			for _, n := range rnd.Perm(len(all)) {
				p := all[n]
				p.reserve(now)
				for i := range addresses {
					name := fmt.Sprintf("192.0.2.%d", i)
					if now < next[i] || !p.l.Usable(now, name) { // within the gap no queue is looked at
						continue
					}
					next[i] = now + gap
					p.l.SetOpen(now, name, true, next[i])
					p.l.SetOpen(now, name, false, next[i])
					uses++
					by[n]++
				}
			}
		}
		most := addresses * int((leases*lease)/gap)
		t.Logf("gap %v: %d of %d requests, %v", gap, uses, most, by)
		if share := float64(uses) / float64(most); share < 0.9 || len(by) != len(all) {
			t.Errorf("gap %v: %.2f of the pace, %v; want 0.9, and some for each", gap, share, by)
		}
	}
}

// TestSlicesOfClientsEnd: clients are given nothing on a shared network when the leases of the slices have
// ended, also if nothing was done about them since then: the reservation may not have answered.
func TestSlicesOfClientsEnd(t *testing.T) {
	const network = "net"
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	p := &clientParty{l: NewClientLeases(lease, 1), store: store, name: "us"}
	p.l.SetNetworks(now, map[string]*configs.SharedNetwork{
		network: {Name: network, Pace: configs.Pace{PerSec: 10, Concurrent: 8}}})
	for ; !p.l.NetworkUsable(now, network, 5); now += second / 4 {
		if p.reserve(now); now > 10*lease {
			t.Fatal("clients get no slice")
		}
	}
	if now += lease; p.l.NetworkUsable(now, network, 5) {
		_, open := p.l.Share(network)
		t.Errorf("%d requests may be open when all leases have ended", open)
	}
}

// TestChosenURLMayLeaveAfterTheTurn: the turn of clients at an address ends while they have URLs. Nothing
// new is chosen, and what was chosen may leave until the lease ends. To look at that asks for nothing.
func TestChosenURLMayLeaveAfterTheTurn(t *testing.T) {
	const name = "192.0.2.1"
	now := second
	store := memory.New(memory.Config{Now: func() time.Time { return start.Add(now) }})
	p := &clientParty{l: NewClientLeases(lease, 1), store: store, name: "us"}
	if p.l.Holds(now, name) || p.l.HoldsNetwork(now, "net") || len(p.l.groups)+len(p.l.caps) > 0 {
		t.Fatal("clients hold, or now want, what nobody asked for")
	}
	for ; !p.l.Usable(now, name); now += second / 4 {
		if p.reserve(now); now > 10*lease {
			t.Fatal("clients get no lease")
		}
	}
	p.l.SetOpen(now, name, true, now+second)
	for ; p.l.Usable(now, name); now += second / 4 {
		if p.reserve(now); now > 20*lease {
			t.Fatal("the turn has no end")
		}
	}
	if !p.l.Holds(now, name) {
		t.Error("what was chosen may not leave, though the lease lasts")
	}
	if p.l.Holds(now+lease, name) {
		t.Error("what was chosen may leave after the lease")
	}
}
