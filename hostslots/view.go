package hostslots

import (
	"math"
	"net/netip"
	"time"
)

// Counts is what the slots hold, by kind.
type Counts struct {
	Slots, Used, Full int
	Cooling           int // groups without a slot that may not be asked yet
	Waiting           int // groups in line for a slot
	Held              int // documents, all of them
	Leftover          int // of them: outside a slot, those of unresolved hosts among them
	Unresolved        int // of them: of hosts whose address is not known yet
	Failing           int // of them: of hosts whose names fail to resolve for now
	InFlight          int // of them: at spiders
	Hosts, Groups     int // known
}

// Counts costs O(1).
func (s *Slots) Counts() Counts {
	return Counts{
		Slots: len(s.slots), Used: s.used, Full: s.full,
		Cooling: s.cools.Len(), Waiting: s.left.Waiting(),
		Held: s.docs.Len(), Leftover: s.left.Len() + s.homeless, Unresolved: s.homeless, Failing: s.failingDocs,
		InFlight: s.txs.Len(), Hosts: s.hosts.Len(), Groups: s.groups.Len(),
	}
}

// Room reports whether a group that came now could have a slot: one is empty, or held by a group that may not be asked
// for long. So no group waits that could use it.
func (s *Slots) HasRoom(now time.Duration) bool {
	if s.emptySlot != 0 {
		return true
	}
	id := s.slow.head
	for range sweepSteps {
		if id == 0 {
			return false
		}
		g := s.groups.At(id)
		if s.isSlow(now, g) && (s.due(g)-now > s.cfg.Patience || s.rests(g)) {
			return true
		}
		id = g.slow.next
	}
	return false
}

const (
	// MaxRejects is how many names Rejects tells at most: some 200 KB of a request to the index.
	MaxRejects = 10_000

	ordinaryHosts = 32 // of a group: where there are more, the others come last
)

// Rejects calls yield with the names of hosts that should not get more documents, each once: those on full slots, on addresses
// with too many documents, barred ones with any, and those whose names fail for now. Of more than MaxRejects the most useful
// come first: hosts with documents that wait, of which the index evidently has more; then the other hosts of all these groups; last the rest of those on
// crowded addresses. It costs O(MaxRejects).
func (s *Slots) Rejects(yield func(name []byte)) {
	r := rejecting{s: s, yield: yield, names: MaxRejects, looks: 8 * MaxRejects}
	for g := s.rejects.head; g != 0 && r.names > 0; g = s.groups.At(g).reject.next {
		for h := s.groups.At(g).turns.head; h != 0 && r.names > 0; h = s.hosts.At(h).turn.next {
			r.tell(h)
		}
	}
	for id := s.barred.head; id != 0 && r.names > 0; id = s.hosts.At(id).bar.next {
		if g := s.hosts.At(id).group; g == 0 || !s.byReject.has(&s.rejects, g) {
			r.tell(id)
		}
	}
	for id := s.failing.head; id != 0 && r.names > 0; id = s.hosts.At(id).member.next {
		if !s.byBarred.has(&s.barred, id) {
			r.tell(id)
		}
	}
	for g := s.rejects.head; g != 0 && r.goesOn(); g = s.groups.At(g).reject.next {
		r.members(s.groups.At(g), 0, ordinaryHosts)
	}
	for g := s.rejects.head; g != 0 && r.goesOn(); g = s.groups.At(g).reject.next {
		if s.groups.At(g).size > ordinaryHosts {
			r.members(s.groups.At(g), ordinaryHosts, math.MaxInt)
		}
	}
}

// rejecting is what a call of Rejects may still do.
type rejecting struct {
	s     *Slots
	yield func(name []byte)
	names int // to tell
	looks int // at hosts
}

func (r *rejecting) goesOn() bool { return r.names > 0 && r.looks > 0 }

func (r *rejecting) tell(host uint32) {
	r.names--
	r.yield(r.s.hostName(host))
}

// members tells the hosts of a group that do not take turns, from a place among its hosts to another one.
func (r *rejecting) members(g *group, from, to int) {
	h := g.members.head
	for n := 0; n < to && h != 0 && r.goesOn(); n++ {
		r.looks--
		if n >= from && !r.s.byTurn.has(&g.turns, h) {
			r.tell(h)
		}
		h = r.s.hosts.At(h).member.next
	}
}

// Readmitted counts how often a barred or failing host, or the hosts of a group, left the reject list.
func (s *Slots) Unrejected() uint64 { return s.readmitted }

// rests reports whether nothing of a group may go out and nothing is under way that would change it: its hosts are blocked,
// or wait for their robots.txt to be tried again.
func (s *Slots) rests(g *group) bool {
	if g.turns.head != 0 || g.asksAny() || g.active() > 0 {
		return false
	}
	id := g.members.head
	for range sweepSteps {
		if id == 0 {
			return true
		}
		h := s.hosts.At(id)
		if h.pins > 0 {
			return false
		}
		id = h.member.next
	}
	return true
}

// SlotView is a slot in use.
type SlotView struct {
	Slot           uint32
	Addr           netip.Addr
	Hosts          []string
	Queued, Active int
	Held           int           // by its group, beyond the slot's length, too
	Next           time.Duration // not before
	Gap            time.Duration
}

// maxLook bounds how many hosts of a group are looked at for those with documents.
const maxLook = 1024

// InUse tells whether a group has slot n.
func (s *Slots) SlotUsed(n uint32) bool { return s.slots[n].group != 0 }

// View returns slot n with at most the given number of host names; ok is false
// where it is empty.
func (s *Slots) Slot(n uint32, hosts int) (v SlotView, ok bool) {
	id := s.slots[n].group
	if id == 0 {
		return SlotView{}, false
	}
	g := s.groups.At(id)
	v = SlotView{
		Slot: n, Addr: s.addr(g.members.head), Active: int(g.sent),
		Queued: max(0, min(int(g.docs), s.cfg.Len)-int(g.sent)), Held: int(g.docs),
		Next: s.due(g), Gap: s.gap(g),
	}
	h := g.members.head
	for n := 0; n < maxLook && h != 0 && len(v.Hosts) < hosts; n++ {
		if s.hosts.At(h).busy() {
			v.Hosts = append(v.Hosts, string(s.hostName(h)))
		}
		h = s.hosts.At(h).member.next
	}
	return v, true
}

// HostView is what the slots know of a host and its group.
type HostView struct {
	Addr           netip.Addr    // of its group; invalid: not resolved
	Slot           int           // of its group; -1: none
	Queued         int           // its own documents that are not at a spider
	InFlight       int           // its own documents at spiders
	Active         int           // open requests to the group, of any host and the daemon's own
	Concurrent     int           // allowed of them
	OwnRequests    int           // the daemon's own requests to it, waiting or open
	Offers         bool          // it has a document that may go out when its turn comes
	Suspended      bool          // it has documents that are kept back for want of a spider
	InSlotQueue    bool          // its group waits for a slot
	Others         int           // hosts of the group that take turns with it
	Last           time.Duration // last request to the group; 0: none since the start
	Next           time.Duration // none before
	Gap            time.Duration // in force
	Base           time.Duration // without any of the below
	Limits         Limits        // on the host
	AddressPending bool          // nothing goes out to it for the moment, by SetAside
	Moving         bool          // it is to change groups when no request to it is open
	Incoming       uint32        // a host that is to join its group, which waits for open requests to that; 0: none
	Rejected       bool          // its group is left out, since it has as much as it may
	HostDelay      time.Duration // asked for by the host's robots.txt
	GroupDelay     time.Duration // the longest of the group's
	Backoff        time.Duration // while backing off
	NotBefore      time.Duration // whatever the gap
	Cause          Cause         // of NotBefore
	Blocked        time.Duration // until; 0: not
	Group          string        // its name, where that is not an address
	Unleased       uint32        // its group, where that may not be asked for want of a claim; 0: it may
}

// Host returns what is known of a host by number.
func (s *Slots) hostView(id uint32) HostView {
	h := s.hosts.At(id)
	v := HostView{
		Slot: -1, Concurrent: s.cfg.Concurrent, OwnRequests: int(h.asks), Offers: h.offers > 0,
		HostDelay: h.delay, Blocked: h.blocked, Next: h.carry, Queued: int(h.docs), Base: s.cfg.Gap,
		Limits: h.limits, Moving: h.moving, AddressPending: h.aside,
	}
	for o := h.origins; o != 0 && !v.Suspended; o = s.origins.At(o).next {
		v.Suspended = s.origins.At(o).parked
	}
	if h.group == 0 {
		return v
	}
	g := s.groups.At(h.group)
	v.Addr, v.Active, v.InSlotQueue = s.addr(id), g.active(), s.left.Waits(h.group)
	v.Slot = int(g.slot) - 1
	v.Last, v.Next, v.Gap = g.last, s.due(g), s.gap(g)
	v.Base, v.Concurrent = s.ordinary(g), s.most(g)
	v.GroupDelay, v.Backoff, v.NotBefore, v.Cause = g.delay, g.backoff, g.notBefore, g.cause
	v.Group = s.names[g.addr]
	v.Rejected, v.Incoming = s.byReject.has(&s.rejects, h.group), s.joiner(h.group)
	if s.cfg.Leases && g.claim != held {
		v.Unleased = h.group
	}
	for o := g.turns.head; o != 0 && v.Others < 1000; o = s.hosts.At(o).turn.next {
		v.Others++
	}
	v.InFlight = s.inFlight(id, g)
	v.Queued -= v.InFlight
	return v
}

// inFlight counts a host's documents in its slot's active range.
func (s *Slots) inFlight(hostID uint32, g *group) (n int) {
	if g.slot == 0 {
		return 0
	}
	sl := s.slots[g.slot-1]
	for _, c := range s.cells[sl.cells : sl.cells+sl.size] {
		if c.tx != 0 && s.origins.At(s.docs.At(s.txs.At(c.tx).doc).origin).host == hostID {
			n++
		}
	}
	return n
}
