package hostslots

import (
	"math"
	"time"
)

// A host with documents or own requests takes turns with the other hosts of its group. While its
// site may not be requested yet it waits in a heap of its group, so that the group passes it over.
// While the network or the address above its site group may not be requested it is in line there,
// behind the hosts that came before it. A host with as many open requests as its site may have, and
// one that is closed, is in none of these places.
//
// A host whose site is due no later than its group stays in the rotation. So an address with one
// site costs nothing here.
type turn uint8

const (
	turnNone   turn = iota // it has nothing to send, or may not send
	turnAble               // it is in the rotation, or its own requests are in the group's queues
	turnWaits              // until its site is due
	turnInLine             // until a request may be sent to what is above its group
)

// mostWoken bounds how many hosts a call wakes or releases, so that no call takes long.
const mostWoken = 64

// updateTurn puts a host where it belongs after anything about it has changed. The caller
// reschedules its group.
func (s *Slots) updateTurn(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.group == 0 || h.turn == turnNone && h.first == 0 && h.own == 0 {
		return
	}
	g := s.groups.At(h.group)
	to, due := s.turnOf(h, g)
	if to == turnAble && h.turn == turnInLine {
		return // until it is released
	}
	if to != h.turn || to == turnWaits && due != h.due {
		s.setTurn(hostID, to, due)
	}
	if in := to == turnAble && h.first != 0; in != h.inRotation {
		h.inRotation = in
		if in {
			s.dispatch.places.pushBack(&g.rotation, hostID)
		} else {
			s.dispatch.places.remove(&g.rotation, hostID)
		}
	}
}

// turnOf returns where a host belongs, and if it has to wait for its site until when.
func (s *Slots) turnOf(h *host, g *group) (to turn, due time.Duration) {
	switch {
	case h.closed() || h.first == 0 && h.own == 0:
		return turnNone, 0
	case g.kind == ofSite:
		return turnAble, 0
	case int(h.open) >= s.pacer.siteOpen(h):
		return turnNone, 0
	}
	if due = s.pacer.siteDue(h); due > s.pacer.now && due > s.pacer.groupDue(g) {
		return turnWaits, due
	}
	return turnAble, 0
}

// setTurn changes the turn of a host, and takes the host out of the rotation, the heap or the line
// that it was in. It puts the host into the heap of waiting hosts; updateTurn puts it into the
// rotation, and lineUp into a line.
func (s *Slots) setTurn(hostID uint32, to turn, due time.Duration) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	switch from := h.turn; from {
	case turnAble:
		if h.inRotation {
			h.inRotation = false
			s.dispatch.places.remove(&g.rotation, hostID)
		}
		if h.own > 0 {
			s.suspendOwnRequests(hostID)
		}
		if h.released { // the next one may go in its place; it is first when it comes back
			s.groups.At(h.above).nextTurn = 0
			s.updateCap(h.above)
		}
	case turnWaits:
		s.unwait(hostID, h, g)
		s.updateWake(h.group, g)
	case turnInLine:
		up := s.groups.At(h.above)
		s.dispatch.places.remove(&up.line, hostID)
		up.lineLen--
		if g.inLine--; g.inLine == 0 {
			g.hostsDue = 0
		}
		s.updateCap(h.above)
	}
	s.countWaiting(h, g, -1)
	h.turn = to
	s.countWaiting(h, g, 1)
	if slow := to == turnWaits && due-s.pacer.now > s.cfg.Patience; slow != h.slow {
		s.setSlow(hostID, slow)
	}
	switch to {
	case turnAble:
		if h.own > 0 {
			s.resumeOwnRequests(hostID)
		}
	case turnWaits:
		h.due, h.child, h.place = due, 0, link{}
		g.waits = s.mergeWaits(g.waits, hostID)
		s.updateWake(h.group, g)
	}
}

// The waiting hosts of a group are a pairing heap by host.due. host.child is a host's first child;
// host.place are the siblings after it and before it, or its parent if it is the first child.

// mergeWaits joins two heaps by their roots.
func (s *Slots) mergeWaits(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a + b
	}
	x, y := s.hosts.At(a), s.hosts.At(b)
	if y.due < x.due {
		a, b, x, y = b, a, y, x
	}
	y.place = link{prev: a, next: x.child}
	if x.child != 0 {
		s.hosts.At(x.child).place.prev = b
	}
	x.child, x.place = b, link{}
	return a
}

// mergeChildren joins sibling heaps, in pairs from the first on and then all from the last on.
func (s *Slots) mergeChildren(first uint32) (root uint32) {
	pairs := uint32(0) // linked by place.next, the last one first
	for a := first; a != 0; {
		b := s.hosts.At(a).place.next
		rest := uint32(0)
		if b != 0 {
			rest = s.hosts.At(b).place.next
			s.hosts.At(b).place = link{}
		}
		s.hosts.At(a).place = link{}
		a = s.mergeWaits(a, b)
		s.hosts.At(a).place.next = pairs
		pairs, a = a, rest
	}
	for a := pairs; a != 0; {
		rest := s.hosts.At(a).place.next
		s.hosts.At(a).place = link{}
		root = s.mergeWaits(root, a)
		a = rest
	}
	return root
}

// unwait takes a host out of the waiting ones of its group.
func (s *Slots) unwait(hostID uint32, h *host, g *group) {
	below := s.mergeChildren(h.child)
	if g.waits == hostID {
		g.waits = below
	} else {
		if before := s.hosts.At(h.place.prev); before.child == hostID {
			before.child = h.place.next
		} else {
			before.place.next = h.place.next
		}
		if h.place.next != 0 {
			s.hosts.At(h.place.next).place.prev = h.place.prev
		}
		g.waits = s.mergeWaits(g.waits, below)
	}
	h.child, h.place = 0, link{}
}

// updateWake sets when a group has a waiting host to wake.
func (s *Slots) updateWake(groupID uint32, g *group) {
	if g.waits == 0 {
		s.dispatch.wakes.Remove(groupID)
	} else {
		s.dispatch.wakes.Set(groupID, s.hosts.At(g.waits).due)
	}
}

// wake lets hosts go on whose sites are due, and releases hosts that are in line.
func (s *Slots) wake(now time.Duration) {
	for range mostWoken {
		groupID, due, ok := s.dispatch.wakes.Min()
		if !ok || due > now {
			break
		}
		s.updateTurn(s.groups.At(groupID).waits)
		s.reschedule(now, groupID)
	}
	for range mostWoken {
		groupID, due, ok := s.dispatch.caps.Min()
		if !ok || due > now {
			break
		}
		s.release(now, groupID)
	}
}

// untilWake returns how long until wake has something to do; 0: not without some other event.
func (s *Slots) untilWake(now time.Duration) (wait time.Duration) {
	if _, due, ok := s.dispatch.wakes.Min(); ok {
		wait = sooner(wait, due-now)
	}
	if _, due, ok := s.dispatch.caps.Min(); ok {
		wait = sooner(wait, due-now)
	}
	return wait
}

// isRequestable reports whether a request to a host of a group that is due may be sent, by its
// site and by what is above its group. If not, the host is set aside until it may.
func (s *Slots) isRequestable(now time.Duration, hostID uint32) bool {
	h := s.hosts.At(hostID)
	if h.above == 0 && h.turn == turnAble && s.pacer.siteDue(h) <= now &&
		int(h.open) < s.pacer.siteOpen(h) {
		return true // the ordinary case
	}
	s.updateTurn(hostID)
	if h.turn != turnAble {
		return false
	}
	if h.above == 0 || faulty(FaultCap) {
		return true
	}
	up := s.groups.At(h.above)
	if s.pacer.groupDue(up) <= now && up.open() < s.pacer.groupOpen(up) && !up.awaitsHosts() &&
		s.hasLeaseAbove(h) && (h.released || up.line.head == 0) {
		return true
	}
	s.lineUp(now, hostID)
	return false
}

// lineUp makes a host wait until a request may be sent to what is above its group.
func (s *Slots) lineUp(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	up := s.groups.At(h.above)
	first := h.released || s.passes(h, up)
	s.setTurn(hostID, turnInLine, 0)
	if h.released = false; first {
		s.dispatch.places.pushFront(&up.line, hostID)
	} else {
		s.dispatch.places.pushBack(&up.line, hostID)
		s.pacer.levels[up.level()].PutOff++
	}
	up.lineLen++
	g, ahead := s.groups.At(h.group), time.Duration(up.lineLen-1)
	g.inLine++
	g.hostsDue = max(now, s.pacer.groupDue(up)) + ahead*s.pacer.gap(&up.pace, s.pacer.groupGap(up))
	s.updateCap(h.above)
}

// passes reports whether a host may go before the first host in line. It may if its alias has the
// address, and the first host lacks the lease of the address. The reservation may deny that lease
// because this daemon has the lease of the alias. If the host stayed behind, the daemon would
// neither send its documents nor release the lease of the alias.
func (s *Slots) passes(h *host, up *group) bool {
	return h.covered && up.line.head != 0 && !s.hasLeaseAbove(s.hosts.At(up.line.head))
}

// release lets the first host go on that is in line at a group. If its own group cannot send now
// the next host is released, too.
func (s *Slots) release(now time.Duration, groupID uint32) {
	up := s.groups.At(groupID)
	hostID := up.line.head
	s.setTurn(hostID, turnAble, 0)
	h := s.hosts.At(hostID)
	h.released = true
	s.updateTurn(hostID)
	s.reschedule(now, h.group)
	if s.isReady(now, h.group) {
		up.nextTurn = now + max(s.pacer.gap(&up.pace, s.pacer.groupGap(up)), time.Millisecond)
		s.updateCap(groupID)
	}
}

// isReady reports whether a document or an own request of a group may be sent now.
func (s *Slots) isReady(now time.Duration, groupID uint32) bool {
	d := &s.dispatch
	return d.ready.Has(groupID) && d.ready.Due(groupID) <= now ||
		d.ownReady[FirstTry].Has(groupID) && d.ownReady[FirstTry].Due(groupID) <= now ||
		d.ownReady[Retry].Has(groupID) && d.ownReady[Retry].Due(groupID) <= now
}

// updateCap sets when the next host in line at a group may go on, and wants the lease of an address
// if it is needed. The hosts of the address itself and the hosts of other groups in line there
// alternate: after a request to a host of one kind, hosts of the other kind go first for one gap.
func (s *Slots) updateCap(groupID uint32) {
	up := s.groups.At(groupID)
	if s.cfg.Leases && up.kind == ofAddress {
		s.leases.update(groupID, up)
	}
	if up.line.head == 0 || up.open() >= s.pacer.groupOpen(up) || up.awaitsHosts() ||
		!s.hasLeaseAbove(s.hosts.At(up.line.head)) {
		s.dispatch.caps.Remove(groupID)
		return
	}
	due := s.pacer.groupDue(up)
	if up.turnAbove && up.rotation.head != 0 {
		due += s.pacer.gap(&up.pace, s.pacer.groupGap(up))
	}
	s.dispatch.caps.Set(groupID, max(due, up.nextTurn))
}

// usableFrom returns the moment from which a group could send a document, as far as its hosts and
// its pace are concerned; math.MaxInt64: not without some other event.
func (s *Slots) usableFrom(g *group) time.Duration {
	switch {
	case g.awaitsHosts():
		return math.MaxInt64
	case g.rotation.head != 0:
		return s.pacer.groupDue(g)
	case g.waits != 0:
		return max(s.pacer.groupDue(g), s.hosts.At(g.waits).due)
	case g.hostsDue != 0:
		return max(s.pacer.groupDue(g), g.hostsDue)
	}
	return math.MaxInt64
}

// began counts a request to a host, which leaves now, at all levels.
func (s *Slots) began(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	h.open++
	s.counted(now, hostID)
	h.released = false
	s.updateTurn(hostID)
	if h.above != 0 {
		up := s.groups.At(h.above)
		up.below++
		up.requests++
		up.turnAbove = true
		up.nextTurn = 0
		s.reschedule(now, h.above)
	}
	s.groups.At(h.group).turnAbove = false
	s.reschedule(now, h.group)
}

// counted notes a request to a host at the given moment at all levels.
func (s *Slots) counted(at time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	g.pace.requested(at)
	if g.kind == ofAddress {
		h.site.requested(at)
		if ordinary := s.pacer.siteGap(h); s.cfg.Leases {
			g.sitesDue = max(g.sitesDue, at+max(ordinary, min(s.pacer.gap(&h.site, ordinary), s.cfg.Patience)))
		}
	}
	if h.above != 0 {
		s.groups.At(h.above).pace.requested(at)
	}
	if h.moving {
		if above := s.moves.pending[hostID].above; above != 0 {
			s.groups.At(above).pace.requested(at)
		}
	}
}

// ended notes the end of a request to a host at all levels, with what it says about the site; f is
// nil if the request ended without an answer of the site. The caller reschedules the group.
func (s *Slots) ended(now time.Duration, hostID uint32, f *Feedback) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	if h.open--; h.open == 0 && h.moving {
		s.moves.movable = append(s.moves.movable, hostID)
	}
	if h.above != 0 {
		s.groups.At(h.above).below--
	}
	if h.moving {
		s.addBelow(now, s.moves.pending[hostID].above, -1)
	}
	if f != nil {
		s.learn(now, hostID, h, g, f)
	}
	s.updateTurn(hostID)
	if h.above != 0 {
		s.reschedule(now, h.above)
	}
}

// keepFromOthers keeps other daemons from an address while one of its sites is to be left alone.
func (s *Slots) keepFromOthers(now time.Duration, h *host, g *group) {
	if s.cfg.Leases && g.kind == ofAddress {
		g.sitesDue = max(g.sitesDue, min(s.pacer.siteDue(h), now+s.cfg.Patience))
	}
}

// learn adapts the pace of a host's site, and of its address.
func (s *Slots) learn(now time.Duration, hostID uint32, h *host, g *group, f *Feedback) {
	of, ordinary := s.sitePace(h)
	s.pacer.learn(now, of, ordinary, f)
	s.keepFromOthers(now, h, g)
	at := h.group
	if h.above != 0 {
		at = h.above
	}
	if f.overloaded() || f.success() {
		s.learnAddress(now, at, hostID, f)
	}
	if f.overloaded() && faulty(FaultNeighbours) {
		g.pace.putOff(now+f.RetryAfter, RetryAfter)
	}
}
