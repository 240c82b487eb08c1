package hostslots

import "time"

// moves is the hosts that Host.Move could not take out of their groups, because requests to them
// are open.
type moves struct {
	pending map[uint32]destination // by host
	movable []uint32               // hosts whose last open request has ended; the move of some was cancelled since
}

// destination is where a host is to go. Both fields are 0 if its open requests are at another address.
type destination struct {
	group uint32 // sends nothing until the host can join it
	above uint32 // above group: counts the host's open requests, too; 0: none is, or it counts them already
}

func (m *moves) init() { m.pending = map[uint32]destination{} }

// incoming returns the host with the lowest number that a group waits for; 0: it waits for none.
func (m *moves) incoming(groupID uint32) (hostID uint32) {
	for host, to := range m.pending { // in any order
		if to.group == groupID && (hostID == 0 || host < hostID) {
			hostID = host
		}
	}
	return hostID
}

// Move takes the host with all its documents out of its group, and returns true; the caller must
// bind it again. Move puts the limits of the new place on the host, and a site group there takes
// over the host's pace. If requests to the host are open, it cannot leave: Move returns false, and
// Movable returns the host when they have ended. Until then nothing is sent to the host, nor to the
// group that it is to join. With elsewhere that group does not wait: the host has another address
// now, so the open requests are at another machine, and may take long.
func (h Host) Move(now time.Duration, to Place, elsewhere bool) (moved bool) {
	s, r := h.s, h.record()
	if r.open > 0 {
		s.beginMove(now, h.id, &to, elsewhere)
		return false
	}
	h.CancelMove(now)
	s.groups.At(r.group).docs -= r.docs
	s.crawls.leave(h.id, r.group)
	s.unresolved.docs += int(r.docs)
	s.docsChanged(r.group)
	s.leaveGroup(now, h.id)
	h.SetLimits(now, to.Site)
	s.mergeAhead(now, h.id, &to)
	return true
}

// beginMove closes a host until it can leave its group. The host may be on its way to another
// group already.
func (s *Slots) beginMove(now time.Duration, hostID uint32, to *Place, elsewhere bool) {
	h, d := s.hosts.At(hostID), destination{}
	if !elsewhere {
		d.group = s.ensurePlace(hostID, to)
		if d.above = s.ensureAbove(to); d.above == h.above || d.above == h.group {
			d.above = 0
		}
	}
	switch {
	case !h.moving:
		h.moving = true
		s.Host(hostID).Pin()
		s.closedChanged(now, hostID)
	case s.moves.pending[hostID] == d:
		return
	default:
		s.leaveDestination(now, hostID)
	}
	s.moves.pending[hostID] = d
	s.addIncoming(now, d.group, 1)
	if of, _ := s.sitePace(h); d.above != 0 {
		s.groups.At(d.above).pace.requested(of.last)
		s.addBelow(now, d.above, int(h.open))
	}
}

// leaveDestination undoes the changes of beginMove to the group that a host was to join and to what is above it.
func (s *Slots) leaveDestination(now time.Duration, hostID uint32) {
	d := s.moves.pending[hostID]
	delete(s.moves.pending, hostID)
	s.addIncoming(now, d.group, -1)
	s.addBelow(now, d.above, -int(s.hosts.At(hostID).open))
}

// addIncoming adds n, 1 or -1, to the number of hosts that a group waits for; group 0 is none.
func (s *Slots) addIncoming(now time.Duration, groupID uint32, n int) {
	if groupID == 0 {
		return
	}
	s.groups.At(groupID).incoming += uint32(n)
	s.reschedule(now, groupID)
}

// addBelow adds n to the number of open requests of hosts that a group is above, or will be; group
// 0 is none.
func (s *Slots) addBelow(now time.Duration, groupID uint32, n int) {
	if groupID == 0 || n == 0 || faulty(FaultBelow) {
		return
	}
	s.groups.At(groupID).below += uint32(n)
	s.reschedule(now, groupID)
}

// mergeAhead prepares a host's new place before the host joins it. A site group takes over the pace of the
// host, and the address or network above it counts the host's last request. An address that is the new group
// counts it only if the host comes out of a site group. mergeAhead adds no group for a host that has no work
// and need not wait.
func (s *Slots) mergeAhead(now time.Duration, hostID uint32, to *Place) {
	h := s.hosts.At(hostID)
	if to.kind() == ofAddress && !h.wasSite {
		return
	}
	if _, known := s.groupByID[to.GroupID(s.hostName(hostID))]; !known && !h.busy() && s.pacer.siteDue(h) <= now {
		return
	}
	id := s.ensurePlace(hostID, to)
	if g := s.groups.At(id); to.kind() == ofAddress {
		g.pace.requested(h.site.last)
	} else {
		s.pacer.merge(&g.pace, &h.site)
		above := s.ensureAbove(to)
		s.groups.At(above).pace.requested(h.site.last)
		s.reschedule(now, above)
	}
	s.reschedule(now, id)
}

// CancelMove lets the host go on in the group that Move was to take it out of.
func (h Host) CancelMove(now time.Duration) {
	s, r := h.s, h.record()
	if !r.moving {
		return
	}
	r.moving = false
	h.Unpin()
	s.closedChanged(now, h.id)
	s.leaveDestination(now, h.id)
}

// Movable returns a host that Host.Move returned false for and whose requests have ended; 0: there
// is none. The host stays in its group until the caller calls Move again.
func (s *Slots) Movable(now time.Duration) (hostID uint32) {
	for n := len(s.moves.movable); n > 0; n = len(s.moves.movable) {
		hostID = s.moves.movable[n-1]
		s.moves.movable = s.moves.movable[:n-1]
		if s.hosts.At(hostID).moving { // the move may have been cancelled since
			s.Host(hostID).CancelMove(now)
			return hostID
		}
	}
	return 0
}
