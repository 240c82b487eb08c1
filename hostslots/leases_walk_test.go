package hostslots

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// leasesWalk drives slots that need leases by random events. After each it checks the lists of
// groups.
type leasesWalk struct {
	t      *testing.T
	rng    *rand.Rand
	s      *Slots
	now    time.Duration
	docs   int
	names  map[uint32]string // of hosts, by own requests
	open   []TransID
	asked  []uint32 // hosts of open own requests
	asking []uint32
}

func (w *leasesWalk) host() []byte { return fmt.Appendf(nil, "h%d.test", w.rng.IntN(12)) }

// settle binds a host that is not settled.
func (w *leasesWalk) settle(id uint32) {
	if !w.s.Host(id).Settled() {
		w.s.Host(id).Unbind(w.now)
		w.s.Host(id).Bind(w.now, w.place(id))
	}
}

// place returns a place of a host. Some hosts are in a site group, some of these at an address that is
// itself one of its hosts.
func (w *leasesWalk) place(id uint32) Place {
	p := Place{Addr: w.addr()}
	if n := w.s.Host(id).Hash() % 6; n < 2 {
		p.Group = fmt.Sprint("site", n)
		p.Covered = n == 0 && w.rng.IntN(3) == 0
	}
	return p
}

// mayAsk checks that the daemon has the leases that a request needs.
func (w *leasesWalk) mayAsk(hostID uint32) {
	h := w.s.hosts.At(hostID)
	up := w.s.groups.At(h.above)
	if w.s.groups.At(h.group).lease.state != leased || h.above != 0 && !h.covered && up.lease.state != leased {
		w.t.Fatalf("at %v: %s is asked, and its group is leased: %v", w.now, w.s.hostName(hostID),
			w.s.groups.At(h.group).lease.state == leased)
	}
}

func (w *leasesWalk) offer() {
	w.docs++
	name := w.host()
	o := w.s.EnsureOrigin(append([]byte("http://"), name...), name)
	w.settle(w.s.HostOf(o))
	w.s.Offer(w.now, Candidate{
		Origin: o, ID: fmt.Append(nil, w.docs), URL: fmt.Appendf(nil, "http://%s/%d", name, w.docs),
	})
}

func (w *leasesWalk) ask() {
	name := w.host()
	id := w.s.EnsureHost(name)
	w.docs++
	w.names[uint32(w.docs)] = string(name)
	w.s.Host(id).Unbind(w.now)
	w.s.Host(id).QueueOwnRequest(w.now, uint32(w.docs), OwnQueue(w.docs%OwnQueues))
	w.settle(id)
}

func (w *leasesWalk) send() {
	if t, _, ok := w.s.Next(w.now); ok {
		w.mayAsk(t.Host)
		w.open = append(w.open, w.s.Send(w.now, t, 1))
	}
	if name, _, _, ok := w.s.NextOwnRequest(w.now, OwnQueue(w.rng.IntN(OwnQueues))); ok {
		host := w.s.FindHost([]byte(w.names[name]))
		w.mayAsk(host)
		w.asked = append(w.asked, host)
	}
}

// pick takes one element out of a slice.
func pick[T any](w *leasesWalk, from *[]T) (one T, ok bool) {
	if len(*from) == 0 {
		return one, false
	}
	i := w.rng.IntN(len(*from))
	one = (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return one, true
}

func (w *leasesWalk) done() {
	if trans, ok := pick(w, &w.open); ok {
		if v, _ := w.s.Lookup(trans); v == Live {
			w.s.End(w.now, w.s.Done(w.now, trans, 200, 0))
		}
	}
	if host, ok := pick(w, &w.asked); ok {
		w.s.Host(host).OwnRequestDone(w.now, Feedback{})
	}
}

func (w *leasesWalk) drop() {
	if n := w.s.FindDoc(fmt.Append(nil, w.rng.IntN(w.docs+1))); n != 0 && w.s.Dequeue(n) {
		w.s.End(w.now, n)
	}
}

func (w *leasesWalk) wantLease() {
	if id := w.s.NextWantedLease(); id != 0 {
		w.asking = append(w.asking, id)
	}
}

// answer grants or denies a lease that was asked for, or an extension.
func (w *leasesWalk) answer() {
	id, ok := pick(w, &w.asking)
	if !ok {
		for group := range w.groups() {
			if w.s.Group(group).Leased() && (id == 0 || group < id) {
				id = group
			}
		}
	}
	switch {
	case id == 0:
	case w.rng.IntN(2) == 0:
		w.s.Group(id).LeaseDenied(w.now, time.Second)
	default:
		w.s.Group(id).LeaseGranted(w.now, w.now+time.Duration(w.rng.IntN(4000))*time.Millisecond)
	}
}

func (w *leasesWalk) release() {
	w.s.ReleasedLeases(w.now, time.Duration(w.rng.IntN(3))*time.Second, nil)
}

func (w *leasesWalk) tick() {
	w.now += time.Duration(w.rng.IntN(800)) * time.Millisecond
	w.s.Tick(w.now)
	for spider, _ := w.s.Overdue(w.now); spider != 0; spider, _ = w.s.Overdue(w.now) {
		doc, _ := w.s.Lost(w.now, spider)
		if w.s.Pool(0).Requeue(w.now, doc, Blame(w.rng.IntN(3))) {
			w.s.End(w.now, doc)
		}
	}
}

func (w *leasesWalk) addr() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(w.rng.IntN(8))})
}

// move takes hosts out of their groups. Some join another group than the one that was announced.
func (w *leasesWalk) move() {
	if id := w.s.FindHost(w.host()); id != 0 {
		w.moveTo(id)
	}
	for id := w.s.Movable(w.now); id != 0; id = w.s.Movable(w.now) {
		w.moveTo(id)
	}
	if id := w.s.FindHost(w.host()); id != 0 && w.rng.IntN(3) == 0 {
		w.s.Host(id).CancelMove(w.now)
	}
}

func (w *leasesWalk) moveTo(id uint32) {
	h := w.s.Host(id)
	_, in := h.GroupID()
	if in && h.Move(w.now, w.place(id), false) && w.rng.IntN(4) > 0 {
		w.settle(id)
	}
}

func (w *leasesWalk) block() {
	if id := w.s.FindHost(w.host()); id != 0 {
		w.s.Host(id).SetLimits(w.now, Limits{Blocked: w.rng.IntN(3) == 0})
	}
}

func (w *leasesWalk) groups() map[uint32]bool {
	known := map[uint32]bool{}
	for _, id := range w.s.groupByID {
		known[id] = true
	}
	return known
}

// list checks that a list has the groups for which in returns true, each once, and that its links
// agree.
func (w *leasesWalk) list(name string, l *recordList[group], in func(g *group) bool) {
	known, listed, before := w.groups(), map[uint32]bool{}, uint32(0)
	for id := l.head; id != 0; id = l.next(id) {
		if !known[id] || listed[id] || l.links.at(id).prev != before {
			w.t.Fatalf("at %v: %s has group %d after %d, known %v, twice %v",
				w.now, name, id, before, known[id], listed[id])
		}
		listed[id], before = true, id
	}
	if l.tail != before {
		w.t.Fatalf("at %v: %s ends with group %d; want %d", w.now, name, l.tail, before)
	}
	for id := range known {
		if g := w.s.groups.At(id); in(g) != listed[id] {
			w.t.Fatalf("at %v: %s has group %d: %v; want %v (%+v)",
				w.now, name, id, listed[id], !listed[id], g)
		}
	}
}

func (w *leasesWalk) check() {
	s := w.s
	w.list("rejects", &s.rejects.groups, func(g *group) bool {
		return g.full || int(g.docs) > s.cfg.RejectOver || g.lease.state == denied
	})
	w.list("wanted", &s.leases.wanted, func(g *group) bool { return g.lease.state == wanted })
	w.list("quotaUsed", &s.dispatch.quotaUsed, s.hasUsedQuota)
	w.list("empty", &s.sweeper.empty, func(g *group) bool { return g.members.head == 0 && g.users == 0 })
	w.moves()
	due := 0
	for id := range w.groups() {
		g := s.groups.At(id)
		if in := g.lease.state == leased || g.lease.state == denied; in != s.leases.ends.Has(id) {
			w.t.Fatalf("at %v: group %d, whose lease state is %d, is due to end: %v",
				w.now, id, g.lease.state, !in)
		} else if in {
			due++
		}
		if s.leases.deferredReleases.Has(id) && g.lease.state == unleased {
			w.t.Fatalf("at %v: the release of group %d, without a lease, is deferred", w.now, id)
		}
	}
	if s.leases.ends.Len() != due {
		w.t.Fatalf("at %v: %d leases are due to end; want %d", w.now, s.leases.ends.Len(), due)
	}
}

// moves checks that each group waits for the hosts that are to join it, and is in no ready heap
// meanwhile, and that their open requests count for what is above it.
func (w *leasesWalk) moves() {
	s, expected, below, moving := w.s, map[uint32]uint32{}, map[uint32]uint32{}, 0
	for host, to := range s.moves.pending {
		if expected[to.group]++; !s.hosts.At(host).moving {
			w.t.Fatalf("at %v: host %d is on its way to %v, and is not moving", w.now, host, to)
		}
		below[to.above] += s.hosts.At(host).open
	}
	s.Hosts(1, uint32(s.hosts.Cap()), func(host uint32) {
		below[s.hosts.At(host).above] += s.hosts.At(host).open
		if s.hosts.At(host).moving {
			moving++
		}
	})
	if moving != len(s.moves.pending) {
		w.t.Fatalf("at %v: %d hosts move, and %d are on their way", w.now, moving, len(s.moves.pending))
	}
	for id := range w.groups() {
		if got := s.groups.At(id).incoming; got != expected[id] {
			w.t.Fatalf("at %v: group %d expects %d hosts; want %d", w.now, id, got, expected[id])
		}
		if got := s.groups.At(id).below; got != below[id] {
			w.t.Fatalf("at %v: group %d has %d open requests below it; want %d", w.now, id, got, below[id])
		}
		d := &s.dispatch
		if expected[id] > 0 && (d.ready.Has(id) || d.ownReady[FirstTry].Has(id) || d.ownReady[Retry].Has(id)) {
			w.t.Fatalf("at %v: group %d is due while it expects hosts", w.now, id)
		}
		delete(expected, id)
	}
	if len(expected) > 0 {
		w.t.Fatalf("at %v: hosts are on their way to groups that are not there: %v", w.now, expected)
	}
}

// TestListsOfLeasedGroups: a group that is forgotten while it is in a list would make it a ring.
func TestListsOfLeasedGroups(t *testing.T) {
	for seed := range uint64(20) {
		w := &leasesWalk{t: t, rng: rand.New(rand.NewPCG(seed, 3)), names: map[uint32]string{}, s: New(Config{
			Count: 1 + int(seed%4), Len: 2, Concurrent: 1 + int(seed%2), Gap: time.Second,
			StatusTimeout: 9 * time.Second,
			MaxAttempts:   3, Patience: 2 * time.Second, RejectOver: 4, Remember: 4, Leases: true, CountDocs: true,
		})}
		events := []func(){w.offer, w.ask, w.send, w.send, w.done, w.done, w.drop,
			w.wantLease, w.wantLease, w.answer, w.answer, w.release, w.tick, w.move, w.block}
		for range 4000 {
			events[w.rng.IntN(len(events))]()
			w.check()
		}
	}
}
