package hostslots

import "time"

// moves is the hosts that Host.Move could not take out of their groups, because requests to them
// are open.
type moves struct {
	pending map[uint32]uint32 // by host: the group that waits for it; 0: none does
	movable []uint32          // hosts without open requests; some are not to move any more
}

func (m *moves) init() { m.pending = map[uint32]uint32{} }

// incoming returns the host with the lowest number that a group waits for; 0: it waits for none.
func (m *moves) incoming(groupID uint32) (hostID uint32) {
	for host, to := range m.pending { // in any order
		if to == groupID && (hostID == 0 || host < hostID) {
			hostID = host
		}
	}
	return hostID
}

// Move takes the host with all its documents out of its group, and returns true; the caller binds
// it again. The host is put under the limits of the place that it is to go to, and a group that is
// its site obeys its pace. If requests to the host are open it cannot leave: Move returns false,
// and Movable returns the host when they have ended. Until then nothing is sent to the host, nor to
// the group that it is to join. With elsewhere that group does not wait: the host has another
// address now, so the open requests are at another machine, and may take long.
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
	h, id := s.hosts.At(hostID), uint32(0)
	if !elsewhere {
		id = s.ensurePlace(hostID, to)
	}
	switch {
	case !h.moving:
		h.moving = true
		s.Host(hostID).Pin()
		s.closedChanged(now, hostID)
	case s.moves.pending[hostID] == id:
		return
	default:
		s.addIncoming(now, s.moves.pending[hostID], -1)
	}
	s.moves.pending[hostID] = id
	s.addIncoming(now, id, 1)
}

// addIncoming adds n, 1 or -1, to the number of hosts that a group waits for; group 0 is none.
func (s *Slots) addIncoming(now time.Duration, groupID uint32, n int) {
	if groupID == 0 {
		return
	}
	s.groups.At(groupID).incoming += uint32(n)
	s.reschedule(now, groupID)
}

// mergeAhead makes a site group that a host is to join obey the pace of the host before it joins.
// It does not add a group for a host without work that need not wait.
func (s *Slots) mergeAhead(now time.Duration, hostID uint32, to *Place) {
	h := s.hosts.At(hostID)
	if to.kind() == ofAddress {
		return
	}
	if _, known := s.groupByID[to.GroupID(s.hostName(hostID))]; !known && !h.busy() && s.pacer.siteDue(h) <= now {
		return
	}
	id := s.ensurePlace(hostID, to)
	s.groups.At(id).pace.merge(&h.site)
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
	to := s.moves.pending[h.id]
	delete(s.moves.pending, h.id)
	s.addIncoming(now, to, -1)
}

// Movable returns a host that Host.Move returned false for and whose requests have ended; 0: there
// is none. The host goes on in its group; the caller calls Move again.
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
