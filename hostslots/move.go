package hostslots

import "time"

// Hosts calls yield with the numbers of known hosts from the given one on, at most so many numbers further; next is
// where to go on, 0 where there are no more.
func (s *Slots) Hosts(from, most uint32, yield func(hostID uint32)) (next uint32) {
	end := uint32(s.hosts.Cap())
	until := min(from+most, end)
	for id := max(from, 1); id < until; id++ {
		if s.hosts.At(id).nameLen > 0 {
			yield(id)
		}
	}
	if until == end {
		return 0
	}
	return until
}

// Key tells groups apart: that of an address, or of a name.
type GroupID [16]byte

// GroupKey is the key of the group that Bind puts a host into or, with a name, BindNamed.
func GroupIDOf(name string, addr [16]byte) GroupID {
	if name == "" {
		return addr
	}
	return namedKey(name)
}

// Move takes a host out of its group with all that is held for it, to be bound anew: to the group with the given key,
// under the limits, where nobody else decides about that. Its times go along, and bind that group from now on. While
// requests to it are open it cannot: it stays, and Movable names it when they have ended. Until then nothing goes out to
// it, nor to the group that it is to join. elsewhere says that it has another address: what is open is at another machine
// then, and may take long, so the group that it is to join goes on.
func (s *Slots) moveHost(now time.Duration, hostID uint32, to GroupID, l Limits, elsewhere bool) (moved bool) {
	h := s.hosts.At(hostID)
	if h.open > 0 {
		s.setOut(now, hostID, to, elsewhere)
		return false
	}
	s.cancelMove(now, hostID)
	s.park(hostID)
	s.groups.At(h.group).docs -= h.docs
	s.moveShares(hostID, -1)
	s.homeless += int(h.docs)
	s.recount(h.group)
	s.depart(now, hostID)
	s.setLimits(now, hostID, l)
	s.announce(now, hostID, to)
	return true
}

// setOut has a host be on its way to a group, which may be another one than before.
func (s *Slots) setOut(now time.Duration, hostID uint32, to GroupID, elsewhere bool) {
	h, id := s.hosts.At(hostID), uint32(0)
	if !elsewhere {
		id = s.groupFor(to)
	}
	switch {
	case !h.moving:
		h.moving = true
		s.pin(hostID)
		s.shutChanged(now, hostID)
	case s.ways[hostID] == id:
		return
	default:
		s.expect(now, s.ways[hostID], -1)
	}
	s.ways[hostID] = id
	s.expect(now, id, 1)
}

// expect adds n, 1 or -1, to the hosts on their way to a group, which waits for them; 0: none does.
func (s *Slots) expect(now time.Duration, groupID uint32, n int) {
	if groupID == 0 {
		return
	}
	s.groups.At(groupID).expects += uint32(n)
	s.place(now, groupID)
}

// announce has the group that a host goes to wait as if the last request to where it comes from had been one to that
// group. A group that is not there is not made for a host that brings neither work nor a wait.
func (s *Slots) announce(now time.Duration, hostID uint32, to GroupID) {
	h := s.hosts.At(hostID)
	if _, known := s.groupByAddr[to]; !known && !h.busy() && max(h.carry, h.left+h.limits.gap(&s.cfg)) <= now {
		return
	}
	id := s.groupFor(to)
	g := s.groups.At(id)
	g.last = max(g.last, h.left)
	s.bring(g, h)
	s.place(now, id)
}

// Stay has a host go on in its group that Move was to take out of it.
func (s *Slots) cancelMove(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	if !h.moving {
		return
	}
	h.moving = false
	s.unpin(hostID)
	s.shutChanged(now, hostID)
	to := s.ways[hostID]
	delete(s.ways, hostID)
	s.expect(now, to, -1)
}

// Movable takes a host that Move is to be called for again; it goes on as it was. 0: there is none.
func (s *Slots) Movable(now time.Duration) (hostID uint32) {
	for n := len(s.movable); n > 0; n = len(s.movable) {
		hostID = s.movable[n-1]
		s.movable = s.movable[:n-1]
		if s.hosts.At(hostID).moving { // it may stay since
			s.cancelMove(now, hostID)
			return hostID
		}
	}
	return 0
}

// joiner is a host on its way to a group; 0: none is.
func (s *Slots) joiner(groupID uint32) (hostID uint32) {
	if s.groups.At(groupID).expects == 0 {
		return 0
	}
	for host, to := range s.ways { // the lowest number, whatever the order
		if to == groupID && (hostID == 0 || host < hostID) {
			hostID = host
		}
	}
	return hostID
}

// closed notes that a request to a host is open no more.
func (s *Slots) closed(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.open--; h.open == 0 && h.moving {
		s.movable = append(s.movable, hostID)
	}
}

// park takes a host's waiting requests out of the line of its group.
func (s *Slots) park(hostID uint32) {
	g := s.groups.At(s.hosts.At(hostID).group)
	for try := range g.asks {
		for id := g.asks[try].head; id != 0; {
			a := *s.asks.At(id)
			if a.host == hostID {
				s.byAsk.remove(&g.asks[try], id)
				s.asks.Free(id)
				s.parked[hostID] = append(s.parked[hostID], a.waiting)
			}
			id = a.link.next
		}
	}
}
