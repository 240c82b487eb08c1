package hostslots

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// claimsWalk drives slots that need claims with random events, and looks after each whether the lists of groups are what
// they are to be.
type claimsWalk struct {
	t        *testing.T
	rng      *rand.Rand
	s        *Slots
	now      time.Duration
	docs     int
	names    map[uint32]string // of hosts, by requests of the daemon's own
	open     []TransID
	asked    []uint32 // hosts, of requests of the daemon's own that are open
	claiming []uint32
}

func (w *claimsWalk) host() []byte { return fmt.Appendf(nil, "h%d.test", w.rng.IntN(12)) }

// settle puts a host somewhere that is not settled.
func (w *claimsWalk) settle(id uint32) {
	if !w.s.Host(id).Settled() {
		w.s.Host(id).Unbind(w.now)
		w.s.Host(id).Bind(w.now, w.addr())
	}
}

func (w *claimsWalk) offer() {
	w.docs++
	name := w.host()
	o := w.s.EnsureOrigin(append([]byte("http://"), name...), name)
	w.settle(w.s.HostOf(o))
	w.s.Offer(w.now, Candidate{Origin: o, ID: fmt.Append(nil, w.docs), URL: fmt.Appendf(nil, "http://%s/%d", name, w.docs), Priority: 0})
}

func (w *claimsWalk) ask() {
	name := w.host()
	id := w.s.EnsureHost(name)
	w.docs++
	w.names[uint32(w.docs)] = string(name)
	w.s.Host(id).Unbind(w.now)
	w.s.Host(id).QueueOwnRequest(w.now, uint32(w.docs), OwnQueue(w.docs%OwnQueues))
	w.settle(id)
}

func (w *claimsWalk) send() {
	if t, _, ok := w.s.Next(w.now); ok {
		w.open = append(w.open, w.s.Send(w.now, t, 1))
	}
	if name, _, _, ok := w.s.NextOwnRequest(w.now, OwnQueue(w.rng.IntN(OwnQueues))); ok {
		w.asked = append(w.asked, w.s.FindHost([]byte(w.names[name])))
	}
}

// pick takes one out.
func pick[T any](w *claimsWalk, from *[]T) (one T, ok bool) {
	if len(*from) == 0 {
		return one, false
	}
	i := w.rng.IntN(len(*from))
	one = (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return one, true
}

func (w *claimsWalk) done() {
	if trans, ok := pick(w, &w.open); ok {
		if v, _ := w.s.Lookup(trans); v == Live {
			w.s.End(w.now, w.s.Done(w.now, trans, 200, 0))
		}
	}
	if host, ok := pick(w, &w.asked); ok {
		w.s.Host(host).OwnRequestDone(w.now, Feedback{})
	}
}

func (w *claimsWalk) drop() {
	if n := w.s.FindDoc(fmt.Append(nil, w.rng.IntN(w.docs+1))); n != 0 && w.s.Dequeue(n) {
		w.s.End(w.now, n)
	}
}

func (w *claimsWalk) claim() {
	if id := w.s.NextWantedLease(); id != 0 {
		w.claiming = append(w.claiming, id)
	}
}

// answer ends a try to claim a group, or to extend a claim.
func (w *claimsWalk) answer() {
	id, ok := pick(w, &w.claiming)
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

func (w *claimsWalk) release() {
	w.s.ReleasedLeases(w.now, time.Duration(w.rng.IntN(3))*time.Second, nil)
}

func (w *claimsWalk) tick() {
	w.now += time.Duration(w.rng.IntN(800)) * time.Millisecond
	w.s.Tick(w.now)
	for spider, _ := w.s.Overdue(w.now); spider != 0; spider, _ = w.s.Overdue(w.now) {
		doc, _ := w.s.Lost(w.now, spider)
		if w.s.Requeue(w.now, doc, 0, Blame(w.rng.IntN(3))) {
			w.s.End(w.now, doc)
		}
	}
}

func (w *claimsWalk) addr() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(w.rng.IntN(8))})
}

// move takes hosts out of their groups; where they go to may be decided otherwise.
func (w *claimsWalk) move() {
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

func (w *claimsWalk) moveTo(id uint32) {
	if _, in := w.s.Host(id).GroupID(); in && w.s.Host(id).Move(w.now, GroupIDOf("", w.addr().As16()), Limits{}, false) && w.rng.IntN(4) > 0 {
		w.settle(id)
	}
}

func (w *claimsWalk) bar() {
	if id := w.s.FindHost(w.host()); id != 0 {
		w.s.Host(id).SetLimits(w.now, Limits{Blocked: w.rng.IntN(3) == 0})
	}
}

func (w *claimsWalk) groups() map[uint32]bool {
	known := map[uint32]bool{}
	for _, id := range w.s.groupByID {
		known[id] = true
	}
	return known
}

// list checks that a list has those groups that it is for, each once, and that it leads from one to the next.
func (w *claimsWalk) list(name string, l *recordList[group], in func(g *group) bool) {
	known, listed, before := w.groups(), map[uint32]bool{}, uint32(0)
	for id := l.head; id != 0; id = l.next(id) {
		if !known[id] || listed[id] || l.links.at(id).prev != before {
			w.t.Fatalf("at %v: %s has group %d after %d, known %v, twice %v", w.now, name, id, before, known[id], listed[id])
		}
		listed[id], before = true, id
	}
	if l.tail != before {
		w.t.Fatalf("at %v: %s ends with group %d; want %d", w.now, name, l.tail, before)
	}
	for id := range known {
		if g := w.s.groups.At(id); in(g) != listed[id] {
			w.t.Fatalf("at %v: %s has group %d: %v; want %v (%+v)", w.now, name, id, listed[id], !listed[id], g)
		}
	}
}

func (w *claimsWalk) check() {
	s := w.s
	w.list("rejects", &s.rejects.groups, func(g *group) bool {
		return g.full || int(g.docs) > s.cfg.RejectOver || g.lease.state == denied
	})
	w.list("wanted", &s.leases.wanted, func(g *group) bool { return g.lease.state == wanted })
	w.list("spent", &s.dispatch.quotaUsed, s.hasUsedQuota)
	w.list("empties", &s.sweeper.empty, func(g *group) bool { return g.members.head == 0 })
	w.ways()
	due := 0
	for id := range w.groups() {
		g := s.groups.At(id)
		if in := g.lease.state == leased || g.lease.state == denied; in != s.leases.ends.Has(id) {
			w.t.Fatalf("at %v: group %d, whose claim is %d, is due to lapse: %v", w.now, id, g.lease.state, !in)
		} else if in {
			due++
		}
		if s.leases.deferredReleases.Has(id) && g.lease.state == unleased {
			w.t.Fatalf("at %v: group %d lingers without a claim", w.now, id)
		}
	}
	if s.leases.ends.Len() != due {
		w.t.Fatalf("at %v: %d claims are due to lapse; want %d", w.now, s.leases.ends.Len(), due)
	}
}

// ways checks that each group expects the hosts that are on their way to it, and is due for nothing meanwhile.
func (w *claimsWalk) ways() {
	s, expected, moving := w.s, map[uint32]uint32{}, 0
	for host, to := range s.moves.pending {
		if expected[to]++; !s.hosts.At(host).moving {
			w.t.Fatalf("at %v: host %d is on its way to %d, and is not moving", w.now, host, to)
		}
	}
	s.Hosts(1, uint32(s.hosts.Cap()), func(host uint32) {
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
		if expected[id] > 0 && (s.dispatch.ready.Has(id) || s.dispatch.ownReady[FirstTry].Has(id) || s.dispatch.ownReady[Retry].Has(id)) {
			w.t.Fatalf("at %v: group %d is due while it expects hosts", w.now, id)
		}
		delete(expected, id)
	}
	if len(expected) > 0 {
		w.t.Fatalf("at %v: hosts are on their way to groups that are not there: %v", w.now, expected)
	}
}

// TestListsOfClaimedGroups: a group that is forgotten while it stands in a list makes a ring of that later.
func TestListsOfClaimedGroups(t *testing.T) {
	for seed := range uint64(20) {
		w := &claimsWalk{t: t, rng: rand.New(rand.NewPCG(seed, 3)), names: map[uint32]string{}, s: New(Config{
			Count: 1 + int(seed%4), Len: 2, Concurrent: 1 + int(seed%2), Gap: time.Second, StatusTimeout: 9 * time.Second,
			MaxAttempts: 3, Patience: 2 * time.Second, RejectOver: 4, Remember: 4, Leases: true, CountDocs: true,
		})}
		events := []func(){w.offer, w.ask, w.send, w.send, w.done, w.done, w.drop, w.claim, w.claim, w.answer, w.answer, w.release, w.tick, w.move, w.bar}
		for range 4000 {
			events[w.rng.IntN(len(events))]()
			w.check()
		}
	}
}
