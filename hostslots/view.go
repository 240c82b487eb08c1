package hostslots

import (
	"math"
	"net/netip"
	"time"
)

// Counts is what the slots hold.
type Counts struct {
	Slots, Used, Full int
	Cooling           int    // groups without a slot whose gap has not passed
	Waiting           int    // groups that wait for a slot
	Held              int    // documents, all of them
	Leftover          int    // of these: in no slot, those of unresolved hosts included
	Unresolved        int    // of these: of hosts without a known address
	Failing           int    // of these: of hosts whose names fail to resolve for now
	InFlight          int    // of all documents: at spiders
	Hosts, Groups     int    // known
	Payloads          int    // bytes of documents' payloads
	Unrejected        uint64 // how often a host, or the hosts of a group, left the reject list
	Levels            [Levels]LevelCounts
}

// Counts returns what the slots hold. It costs O(1).
func (s *Slots) Counts() Counts {
	return Counts{
		Slots: len(s.table.slots), Used: s.table.used, Full: s.table.full,
		Cooling: s.pacer.cooldowns.Len(), Waiting: s.dispatch.slotQueue.Waiting(),
		Held: s.docs.Len(), Leftover: s.dispatch.slotQueue.Len() + s.unresolved.docs,
		Unresolved: s.unresolved.docs, Failing: s.unresolved.failingDocs,
		InFlight: s.table.transactions.Len(), Hosts: s.hosts.Len(), Groups: s.groups.Len(),
		Payloads: s.payloads, Unrejected: s.rejects.unrejected,
		Levels: s.pacer.levels,
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
	v := SlotSummary{State: Ready, Sent: g.sent, Docs: g.docs, Gap: s.Group(groupID).Gap()}
	switch {
	case g.sent > 0:
		v.State = Active
	case s.pacer.groupDue(g) > now, g.awaitsHosts(), g.rotation.head == 0 && s.usableFrom(g) < math.MaxInt64:
		v.State = Cooling
	case g.rotation.head == 0:
		v.State = Stalled
	}
	return v
}

// SlotView is a slot in use.
type SlotView struct {
	Slot           uint32
	Group          string // the name of its group, or the address that this is
	Addr           netip.Addr
	Hosts          []string
	Queued, Active int           // documents in the slot: not at a spider, and at one
	Held           int           // documents of its group, leftover included
	Next           time.Duration // no request before this moment
	Gap            time.Duration // in force
	HeldBy         Level         // whose pace keeps its group from sending
}

// Bounds of how many hosts of a group are looked at: by Slot, and for HostView.Others.
const (
	maxViewed = 1024
	maxOthers = 1000
)

// SlotUsed reports whether a group has slot n.
func (s *Slots) SlotUsed(n uint32) bool { return s.table.slots[n].group != 0 }

// Slot returns slot n with at most the given number of names of hosts; ok is false if it is empty.
func (s *Slots) Slot(now time.Duration, n uint32, hosts int) (v SlotView, ok bool) {
	id := s.table.slots[n].group
	if id == 0 {
		return SlotView{}, false
	}
	g := s.groups.At(id)
	v = SlotView{
		Slot: n, Group: s.Group(id).Name(), Addr: s.addr(g.members.head), Active: int(g.sent),
		Queued: max(0, min(int(g.docs), s.cfg.Len)-int(g.sent)), Held: int(g.docs),
		Gap: s.Group(id).Gap(),
	}
	v.HeldBy, v.Next = s.heldBy(now, id, g)
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
	Host  string
	Until time.Duration
}

// Blocked returns the hosts that the operator has blocked, at most so many; all is their number.
func (s *Slots) Blocked(most int) (hosts []BlockedHost, all int) {
	s.pacer.blocks.Each(func(id uint32, until time.Duration) bool {
		hosts = append(hosts, BlockedHost{Host: string(s.hostName(id)), Until: until})
		return len(hosts) < most
	})
	return hosts, s.pacer.blocks.Len()
}

// RuleBlocked returns hosts with documents that their limits block, at most so many; more reports
// whether there are others.
func (s *Slots) RuleBlocked(most int) (names []string, more bool) {
	looks := MaxRejects
	for id := s.rejects.hosts.head; id != 0; id = s.rejects.hosts.next(id) {
		if looks--; len(names) == most || looks < 0 {
			return names, true
		}
		if s.hosts.At(id).ruleBlocked {
			names = append(names, string(s.hostName(id)))
		}
	}
	return names, false
}

// HostSummary is the state of a host, as far as it costs no more than a look at its group.
type HostSummary struct {
	Name         []byte        // good until the host is forgotten
	Held         int           // its documents, those at spiders included
	Next         time.Duration // no request before this moment
	BlockedUntil time.Duration // by the operator; 0: not
	RuleBlocked  bool          // by its limits
}

// Summary returns what a list of hosts shows of the host.
func (h Host) Summary() HostSummary {
	r := h.record()
	v := HostSummary{
		Name: h.Name(), Held: int(r.docs), Next: h.s.pacer.due(h.s.sitePace(r)),
		BlockedUntil: h.BlockedUntil(), RuleBlocked: r.ruleBlocked,
	}
	for _, id := range [...]uint32{r.group, r.above} {
		if id != 0 {
			v.Next = max(v.Next, h.s.pacer.groupDue(h.s.groups.At(id)))
		}
	}
	return v
}

// LevelView is what is known of the pace of a site, an address or a shared network.
type LevelView struct {
	Level      Level         // NoLevel: there is none
	Name       string        // "": there is none
	Gap        time.Duration // in force
	Base       time.Duration // the gap by settings and limits alone
	Open       int           // requests, own requests included
	MostOpen   int           // how many may be open
	Last       time.Duration // last request; 0: none since the start
	Next       time.Duration // no request before this moment
	Backoff    time.Duration // the gap while it backs off; 0: it does not
	NotBefore  time.Duration // no request before this moment, whatever the gap
	Cause      Cause         // of NotBefore
	CrawlDelay time.Duration // of a site
	Failing    []string      // of an address that backs off: the sites that are the cause
}

// HostView is what is known of a host and its group.
type HostView struct {
	Addr           netip.Addr    // that requests go to; invalid: not resolved
	Slot           int           // of its group; -1: none
	Queued         int           // the host's documents that are not at a spider
	InFlight       int           // the host's documents at spiders
	Offers         bool          // it has a document that may be sent when it is next in its group
	Suspended      bool          // documents wait for a spider of their pool
	InSlotQueue    bool          // its group waits for a slot
	Others         int           // hosts in the group's rotation, at most maxOthers
	Site           LevelView     // the pace of its site
	Address        LevelView     // the pace of its address or of the shared network that it is on
	InLine         int           // hosts in line for Address, if this host is one of them; otherwise 0
	Next           time.Duration // no request before this moment
	Limits         Limits        // of the host
	AddressPending bool          // its address is looked up again
	Moving         bool          // it leaves its group when no request to it is open
	Incoming       uint32        // a host that is to join its group, which sends nothing until then; 0: none
	Rejected       bool          // the hosts of its group are rejected
	HostDelay      time.Duration // its Crawl-delay
	Blocked        time.Duration // when the operator's block ends; 0: there is none
	Group          string        // the group's name; empty: it has none
	Unleased       uint32        // the group or address whose lease the daemon lacks for a request; 0: none
}

// View returns what is known of the host and its group.
func (h Host) View() HostView {
	s, r := h.s, h.record()
	v := HostView{
		Slot: -1, Offers: r.first != 0, Queued: int(r.docs),
		HostDelay: s.pacer.extra(&r.site).crawlDelay, Blocked: h.BlockedUntil(), Limits: h.Limits(),
		Moving: r.moving, AddressPending: r.addressPending,
	}
	v.Site, v.Address = s.levels(h.id)
	v.Next = max(v.Site.Next, v.Address.Next)
	for o := r.origins; o != 0 && !v.Suspended; o = s.origins.At(o).next {
		v.Suspended = s.origins.At(o).closed&forSpider != 0
	}
	if r.group == 0 {
		return v
	}
	g := s.groups.At(r.group)
	v.Addr, v.InSlotQueue = h.Addr(), s.dispatch.slotQueue.Waits(r.group)
	v.Slot = int(g.slot) - 1
	if r.turn == turnInLine {
		v.InLine = int(s.groups.At(r.above).lineLen)
	}
	v.Group = s.named.names[g.id]
	v.Rejected = s.rejects.groups.has(r.group)
	if g.incoming > 0 {
		v.Incoming = s.moves.incoming(r.group)
	}
	switch {
	case s.cfg.Leases && g.lease.state != leased:
		v.Unleased = r.group
	case r.turn == turnInLine && !s.hasLeaseAbove(r):
		v.Unleased = r.above
	}
	for o := g.rotation.head; o != 0 && v.Others < maxOthers; o = s.dispatch.places.next(o) {
		v.Others++
	}
	v.InFlight = s.inFlight(h.id, g)
	v.Queued -= v.InFlight
	return v
}

// levels returns what is known of the pace of a host's site and of its address or shared network.
func (s *Slots) levels(hostID uint32) (site, above LevelView) {
	h := s.hosts.At(hostID)
	of, ordinary := s.sitePace(h)
	site = s.level(of, ordinary)
	site.Level = SiteLevel
	site.Name, site.Open, site.MostOpen = s.siteName(hostID), int(h.open), s.pacer.siteOpen(h)
	id := h.group
	if h.above != 0 {
		g := s.groups.At(h.group)
		site.Open, site.MostOpen = g.open(), s.pacer.groupOpen(g)
		id = h.above
	}
	if id == 0 {
		return site, above
	}
	g := s.groups.At(id)
	above = s.level(&g.pace, s.pacer.groupGap(g))
	above.Level = g.level()
	above.Name, above.Open, above.MostOpen = s.Group(id).Name(), g.open(), s.pacer.groupOpen(g)
	above.Failing = s.failingSites(id)
	return site, above
}

func (s *Slots) level(of *pace, ordinary time.Duration) LevelView {
	return LevelView{
		Gap: s.pacer.gap(of, ordinary), Base: ordinary, Last: of.last, Next: s.pacer.due(of, ordinary),
		Backoff: s.pacer.extra(of).backoff, NotBefore: of.notBefore, Cause: of.cause,
		CrawlDelay: s.pacer.extra(of).crawlDelay,
	}
}

// CapView is the use of a shared network.
type CapView struct {
	Open     int    // requests
	Waiting  int    // sites that could be requested but for the network
	Requests uint64 // so far
}

// Cap returns the use of a shared network, by its name.
func (s *Slots) Cap(network string) CapView {
	n, known := s.groupByID[networkID(network)]
	if !known {
		return CapView{}
	}
	g := s.groups.At(n)
	return CapView{Open: g.open(), Waiting: int(g.lineLen), Requests: g.requests}
}

// inFlight counts the documents of a host in the active range of its group's slot.
func (s *Slots) inFlight(hostID uint32, g *group) (n int) {
	if g.slot == 0 {
		return 0
	}
	sl := s.table.slots[g.slot-1]
	for _, c := range s.table.cells[sl.cells : sl.cells+sl.size] {
		if c.transaction != 0 && s.table.transactions.At(c.transaction).host == hostID {
			n++
		}
	}
	return n
}
