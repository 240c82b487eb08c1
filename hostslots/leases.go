package hostslots

import (
	"net/netip"
	"time"

	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// leases is what is known of the daemon's leases of host groups. With Config.Leases a request is
// sent only while its group is leased: without a lease a group is in no ready heap.
type leases struct {
	ends             timeheap.Heap     // leased and denied groups, by when the lease or the denial ends
	wanted           recordList[group] // groups that want a lease, longest first
	idle             []uint32          // leased groups that may not need their lease any more; some are listed twice
	deferredReleases timeheap.Heap     // leased groups that do not need their lease, by when ReleasedLeases looks again
	rest             time.Duration     // how long after its release a yielded lease is not asked for again
}

// lease is the state of one group's lease.
type lease struct {
	state   leaseState
	denials uint8 // since the last lease
	yields  bool  // it is leased, and is released when no request is open; see Group.YieldLease
}

type leaseState uint8

const (
	unleased leaseState = iota
	wanted              // in leases.wanted
	asked               // returned by NextWantedLease
	leased              // until leases.ends
	denied              // not asked for again until leases.ends
)

// usable reports whether requests may be sent under a lease.
func (l *lease) usable() bool { return l.state == leased && !l.yields }

// firstDenial is how long a lease that was denied once is not asked for again.
const firstDenial = time.Second / 2

func (l *leases) init(groups *slab.Slab[group]) {
	l.wanted = newRecordList(groups, func(g *group) *link { return &g.wanted })
}

// needsLease reports whether a group has something to send, or an open request, or hosts of site
// groups in line. A group whose host waits in line keeps its lease, or each turn at the cap would
// wait for the reservation.
func (g *group) needsLease() bool {
	if g.lease.yields {
		return g.open() > 0
	}
	return g.slot != 0 && (g.rotation.head != 0 || g.inLine > 0) || g.hasOwn() || g.open() > 0 ||
		g.users > 0 && g.line.head != 0
}

// hasLeaseAbove reports whether the daemon has the lease of the address above a host's site group.
func (s *Slots) hasLeaseAbove(h *host) bool {
	up := s.groups.At(h.above)
	return !s.cfg.Leases || up.kind == ofNetwork || h.covered || up.lease.usable()
}

// deniedLease returns the group whose denied lease keeps a group from sending: the group itself, or
// the address at which its hosts are in line; 0: neither lease was denied. It looks at the address
// of the first host only.
func (s *Slots) deniedLease(id uint32, g *group) (denies uint32) {
	if g.lease.state == denied {
		return id
	}
	if g.rotation.head != 0 || g.inLine == 0 {
		return 0
	}
	if h := s.hosts.At(g.members.head); !h.covered && s.groups.At(h.above).lease.state == denied {
		return h.above
	}
	return 0
}

// deniedAbove is called when the lease of an address was denied. The site groups whose hosts are in
// line there cannot use their slots until the daemon asks for the lease again. deniedAbove moves
// hosts whose alias has the address to the front of the line; see passes.
func (s *Slots) deniedAbove(now time.Duration, addressID uint32) {
	up, until := s.groups.At(addressID), s.leases.ends.Due(addressID)
	next := up.line.head
	for range mostWoken {
		if next == 0 {
			return
		}
		id, h := next, s.hosts.At(next)
		next = s.dispatch.places.next(next)
		if s.passes(h, up) {
			s.dispatch.places.remove(&up.line, id)
			s.dispatch.places.pushFront(&up.line, id)
			s.updateCap(addressID)
		}
		if !h.covered {
			g := s.groups.At(h.group)
			g.hostsDue = max(g.hostsDue, until)
			s.reschedule(now, h.group)
		}
	}
}

// update makes a group want a lease if it needs one, and no longer want one if it does not. A
// leased group that does not need its lease goes to idle. A denial stays as it is.
func (l *leases) update(id uint32, g *group) {
	switch needs := g.needsLease(); {
	case needs && g.lease.state == unleased:
		g.lease.state = wanted
		l.wanted.pushBack(id)
	case needs:
	case g.lease.state == wanted:
		g.lease.state = unleased
		l.wanted.remove(id)
	case g.lease.state == leased: // the group may need its lease again before ReleasedLeases looks
		l.idle = append(l.idle, id)
	}
}

// end ends a lease or a denial.
func (l *leases) end(id uint32, g *group) {
	g.lease.state, g.lease.yields = unleased, false
	l.ends.Remove(id)
	l.deferredReleases.Remove(id)
}

// grant sets the end of a lease. It returns false, and does nothing, if the group has neither
// asked for it nor has it.
func (l *leases) grant(id uint32, g *group, until time.Duration) bool {
	if g.lease.state != asked && g.lease.state != leased {
		return false
	}
	g.lease.state, g.lease.denials = leased, 0
	l.ends.Set(id, until)
	return true
}

// deny notes that a lease was denied or lost. It returns false, and does nothing, if the group has
// neither asked for the lease nor has it.
func (l *leases) deny(now time.Duration, id uint32, g *group, most time.Duration) bool {
	if g.lease.state != asked && g.lease.state != leased {
		return false
	}
	g.lease.state, g.lease.yields = denied, false
	l.ends.Set(id, now+min(most, firstDenial<<g.lease.denials))
	g.lease.denials = min(g.lease.denials+1, 10)
	return true
}

// NextWantedLease returns the group that has wanted a lease longest; 0: none does. The caller asks
// the reservation for it, and calls Group.LeaseGranted or Group.LeaseDenied.
func (s *Slots) NextWantedLease() (groupID uint32) {
	id := s.leases.wanted.head
	if id != 0 {
		s.leases.wanted.remove(id)
		s.groups.At(id).lease.state = asked
	}
	return id
}

// ReleasedLeases ends the leases that their groups do not need, and appends these groups to to. If
// the gap of a group ends within linger, and before the lease does, the lease is kept until then:
// no other daemon could use the group sooner, and more documents may come. The lease of an address
// with site groups is kept for linger, since their next request needs it. So is the lease of a
// group with a slot, documents and no gap to wait for: most often the daemon is looking up the
// address of its host again, which takes little time.
func (s *Slots) ReleasedLeases(now, linger time.Duration, to []uint32) []uint32 {
	for _, id := range s.leases.idle {
		to = s.releaseLease(now, linger, id, to)
	}
	s.leases.idle = s.leases.idle[:0]
	for {
		id, until, ok := s.leases.deferredReleases.Min()
		if !ok || until > now {
			return to
		}
		s.leases.deferredReleases.Remove(id)
		to = s.releaseLease(now, 0, id, to)
	}
}

func (s *Slots) releaseLease(now, linger time.Duration, id uint32, to []uint32) []uint32 {
	g := s.groups.At(id)
	if g.lease.state != leased || g.needsLease() {
		return to
	}
	due := s.Group(id).FreeFrom()
	if g.users > 0 && due <= now+linger || g.slot != 0 && g.docs > 0 && due <= now {
		due = now + linger
	}
	yields := g.lease.yields
	if due > now && due-now <= linger && due < s.leases.ends.Due(id) && !yields {
		s.leases.deferredReleases.Set(id, due)
		return to
	}
	if s.leases.end(id, g); yields {
		g.lease.state = denied
		s.leases.ends.Set(id, now+s.leases.rest)
		s.docsChanged(id)
	}
	return append(to, id)
}

// LeaseFree is Group.LeaseFree for the group of an address. It does nothing if there is no such group.
func (s *Slots) LeaseFree(now time.Duration, addr netip.Addr, after time.Duration) {
	if id, known := s.groupByID[addr.As16()]; known {
		s.Group(id).LeaseFree(now, after)
	}
}

// expireLeases ends the leases and denials whose time is over.
func (s *Slots) expireLeases(now time.Duration) {
	for {
		id, until, ok := s.leases.ends.Min()
		if !ok || until > now {
			return
		}
		s.leases.end(id, s.groups.At(id))
		s.docsChanged(id)
		s.reschedule(now, id)
	}
}
