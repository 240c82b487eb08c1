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
