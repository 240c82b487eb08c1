package hostslots

import (
	"net/netip"
	"time"
)

// Counts is what the slots hold.
type Counts struct {
	Slots, Used, Full int
	Cooling           int // groups without a slot whose gap has not passed
	Waiting           int // groups that wait for a slot
	Held              int // documents, all of them
	Leftover          int // of these: in no slot, those of unresolved hosts included
	Unresolved        int // of these: of hosts without a known address
	Failing           int // of these: of hosts whose names fail to resolve for now
	InFlight          int // of all documents: at spiders
	Hosts, Groups     int // known
}

// Counts returns what the slots hold. It costs O(1).
func (s *Slots) Counts() Counts {
	return Counts{
		Slots: len(s.table.slots), Used: s.table.used, Full: s.table.full,
		Cooling: s.pacer.cooldowns.Len(), Waiting: s.dispatch.slotQueue.Waiting(),
		Held: s.docs.Len(), Leftover: s.dispatch.slotQueue.Len() + s.unresolved.docs,
		Unresolved: s.unresolved.docs, Failing: s.unresolved.failingDocs,
		InFlight: s.table.transactions.Len(), Hosts: s.hosts.Len(), Groups: s.groups.Len(),
	}
}

// State is the state of a slot.
type State uint8

const (
	Empty   State = iota // no group has it
	Ready                // a document may be sent now
	Active               // documents are at a spider
	Cooling              // none is, and a request may not be sent yet
	Stalled              // no document may be sent: hosts are blocked, or wait for robots.txt

	States = int(Stalled) + 1
)

// SlotSummary is the state of a slot, as far as it costs no more than a look at its group.
type SlotSummary struct {
	State State
	Sent  uint32        // documents at spiders
	Docs  uint32        // held for its group, those at spiders and leftover included
	Gap   time.Duration // in force
}

// Summaries fills dst with the summaries of slots, beginning with number from. It returns how many
// there were.
func (s *Slots) Summaries(now time.Duration, from int, dst []SlotSummary) int {
	n := max(0, min(len(dst), len(s.table.slots)-from))
	for i := range dst[:n] {
		dst[i] = s.summary(now, s.table.slots[from+i].group)
	}
	return n
}

func (s *Slots) summary(now time.Duration, groupID uint32) SlotSummary {
	if groupID == 0 {
		return SlotSummary{}
	}
	g := s.groups.At(groupID)
	v := SlotSummary{State: Ready, Sent: g.sent, Docs: g.docs, Gap: s.pacer.gap(&g.pace)}
	switch {
	case g.sent > 0:
		v.State = Active
	case s.pacer.due(&g.pace) > now, g.awaitsHosts():
		v.State = Cooling
	case g.rotation.head == 0:
		v.State = Stalled
	}
	return v
}

// SlotView is a slot in use.
type SlotView struct {
	Slot           uint32
	Addr           netip.Addr
	Hosts          []string
	Queued, Active int           // documents in the slot: not at a spider, and at one
	Held           int           // documents of its group, leftover included
	Next           time.Duration // no request before
	Gap            time.Duration // in force
}

// Bounds of how many hosts of a group are looked at: by Slot, and for HostView.Others.
const (
	maxViewed = 1024
	maxOthers = 1000
)

// SlotUsed reports whether a group has slot n.
func (s *Slots) SlotUsed(n uint32) bool { return s.table.slots[n].group != 0 }

// Slot returns slot n with at most the given number of names of hosts; ok is false if it is empty.
func (s *Slots) Slot(n uint32, hosts int) (v SlotView, ok bool) {
	id := s.table.slots[n].group
	if id == 0 {
		return SlotView{}, false
	}
	g := s.groups.At(id)
	v = SlotView{
		Slot: n, Addr: s.addr(g.members.head), Active: int(g.sent),
		Queued: max(0, min(int(g.docs), s.cfg.Len)-int(g.sent)), Held: int(g.docs),
		Next: s.pacer.due(&g.pace), Gap: s.pacer.gap(&g.pace),
	}
	h := g.members.head
	for n := 0; n < maxViewed && h != 0 && len(v.Hosts) < hosts; n++ {
		if s.hosts.At(h).busy() {
			v.Hosts = append(v.Hosts, string(s.hostName(h)))
		}
		h = s.members.next(h)
	}
	return v, true
}

// BlockedHost is a host that the operator has blocked.
type BlockedHost struct {
	Name  string
	Until time.Duration
}

// Blocked returns the hosts that the operator has blocked, at most so many; all is their number.
func (s *Slots) Blocked(most int) (hosts []BlockedHost, all int) {
	s.pacer.blocks.Each(func(id uint32, until time.Duration) bool {
		hosts = append(hosts, BlockedHost{Name: string(s.hostName(id)), Until: until})
		return len(hosts) < most
	})
	return hosts, s.pacer.blocks.Len()
}

// RuleBlocked returns hosts with documents that their limits block, at most so many; more reports
// whether there are others.
func (s *Slots) RuleBlocked(most int) (names []string, more bool) {
	for id := s.rejects.ruleBlocked.head; id != 0; id = s.rejects.ruleBlocked.next(id) {
		if len(names) == most {
			return names, true
		}
		names = append(names, string(s.hostName(id)))
	}
	return names, false
}

// HostSummary is the state of a host, as far as it costs no more than a look at its group.
type HostSummary struct {
	Name         []byte        // good until the host is forgotten
	Held         int           // its documents, those at spiders included
	Next         time.Duration // no request before
	BlockedUntil time.Duration // by the operator; 0: not
	RuleBlocked  bool          // by its limits
}

// Summary returns what a list of hosts shows of the host.
func (h Host) Summary() HostSummary {
	r := h.record()
	v := HostSummary{
		Name: h.Name(), Held: int(r.docs), Next: r.carried.notBefore, BlockedUntil: r.blocked,
		RuleBlocked: r.limits.Blocked,
	}
	if r.group != 0 {
		v.Next = max(v.Next, h.s.pacer.due(&h.s.groups.At(r.group).pace))
	}
	return v
}

// HostView is what is known of a host and its group.
type HostView struct {
	Addr           netip.Addr    // that requests go to; invalid: not resolved
	Slot           int           // of its group; -1: none
	Queued         int           // its own documents that are not at a spider
	InFlight       int           // its own documents at spiders
	Active         int           // open requests to the group, own requests included
	Concurrent     int           // how many may be open
	OwnRequests    int           // own requests to the host, waiting or open
	Offers         bool          // it has a document that may be sent when it is next in its group
	Suspended      bool          // documents wait for a spider of their pool
	InSlotQueue    bool          // its group waits for a slot
	Others         int           // hosts in the group's rotation, at most maxOthers
	Last           time.Duration // last request to the group; 0: none since the start
	Next           time.Duration // no request before
	Gap            time.Duration // in force
	Base           time.Duration // the gap by settings and limits alone
	Limits         Limits        // of the host
	AddressPending bool          // its address is looked up again
	Moving         bool          // it leaves its group when no request to it is open
	Incoming       uint32        // a host that is to join its group, which waits for that; 0: none
	Rejected       bool          // the hosts of its group are rejected
	HostDelay      time.Duration // its Crawl-delay
	GroupDelay     time.Duration // the longest Crawl-delay of the group
	Backoff        time.Duration // the gap while the group backs off; 0: it does not
	NotBefore      time.Duration // no request before, whatever the gap
	Cause          Cause         // of NotBefore
	Blocked        time.Duration // by the operator, until; 0: not
	Group          string        // the group's name; empty: it has none
	Unleased       uint32        // the group, if it needs a lease to send and has none; 0 otherwise
}

// View returns what is known of the host and its group.
func (h Host) View() HostView {
	s, r := h.s, h.record()
	v := HostView{
		Slot: -1, Concurrent: s.cfg.Concurrent, OwnRequests: int(r.own), Offers: r.offers > 0,
		HostDelay: r.crawlDelay, Blocked: r.blocked, Next: r.carried.notBefore, Queued: int(r.docs),
		Base: s.cfg.Gap, Limits: r.limits, Moving: r.moving, AddressPending: r.addressPending,
	}
	for o := r.origins; o != 0 && !v.Suspended; o = s.origins.At(o).next {
		v.Suspended = s.origins.At(o).suspended
	}
	if r.group == 0 {
		return v
	}
	g := s.groups.At(r.group)
	v.Addr, v.Active, v.InSlotQueue = h.Addr(), g.open(), s.dispatch.slotQueue.Waits(r.group)
	v.Slot = int(g.slot) - 1
	v.Last, v.Next, v.Gap = g.pace.last, s.pacer.due(&g.pace), s.pacer.gap(&g.pace)
	v.Base, v.Concurrent = s.pacer.ordinaryGap(&g.pace), s.pacer.maxOpen(&g.pace)
	v.GroupDelay, v.Backoff = g.pace.crawlDelay, g.pace.backoff
	v.NotBefore, v.Cause = g.pace.notBefore, g.pace.cause
	v.Group = s.named.names[g.id]
	v.Rejected = s.rejects.groups.has(r.group)
	if g.incoming > 0 {
		v.Incoming = s.moves.incoming(r.group)
	}
	if s.cfg.Leases && g.lease.state != leased {
		v.Unleased = r.group
	}
	for o := g.rotation.head; o != 0 && v.Others < maxOthers; o = s.dispatch.rotation.next(o) {
		v.Others++
	}
	v.InFlight = s.inFlight(h.id, g)
	v.Queued -= v.InFlight
	return v
}

// inFlight counts the documents of a host in the active range of its group's slot.
func (s *Slots) inFlight(hostID uint32, g *group) (n int) {
	if g.slot == 0 {
		return 0
	}
	sl := s.table.slots[g.slot-1]
	for _, c := range s.table.cells[sl.cells : sl.cells+sl.size] {
		if c.transaction != 0 && s.hostOfDoc(s.table.transactions.At(c.transaction).doc) == hostID {
			n++
		}
	}
	return n
}
