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
type Key [16]byte

// GroupKey is the key of the group that Bind puts a host into or, with a name, BindNamed.
func GroupKey(name string, addr [16]byte) Key {
	if name == "" {
		return addr
	}
	return namedKey(name)
}

// GroupOf is the key of the group that a host is in; ok is false where it is in none.
func (s *Slots) GroupOf(hostID uint32) (key Key, ok bool) {
	id := s.hosts.At(hostID).group
	if id == 0 {
		return Key{}, false
	}
	return s.groups.At(id).addr, true
}

// Move takes a host out of its group with all that is held for it, to be bound anew. Its times go along. While
// requests to it are open it cannot: it stays, nothing more goes out to it, and Movable names it when they have ended.
func (s *Slots) Move(now time.Duration, hostID uint32) (moved bool) {
	h := s.hosts.At(hostID)
	if h.open > 0 {
		if !h.moving {
			h.moving = true
			s.Pin(hostID)
			s.shutChanged(now, hostID)
		}
		return false
	}
	s.park(hostID)
	s.groups.At(h.group).docs -= h.docs
	s.homeless += int(h.docs)
	s.recount(h.group)
	s.depart(now, hostID)
	return true
}

// Movable takes a host that Move is to be called for again; it goes on as it was. 0: there is none.
func (s *Slots) Movable(now time.Duration) (hostID uint32) {
	n := len(s.movable)
	if n == 0 {
		return 0
	}
	hostID = s.movable[n-1]
	s.movable = s.movable[:n-1]
	s.hosts.At(hostID).moving = false
	s.Unpin(hostID)
	s.shutChanged(now, hostID)
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
	for id := g.asks.head; id != 0; {
		a := *s.asks.At(id)
		if a.host == hostID {
			s.byAsk.remove(&g.asks, id)
			s.asks.Free(id)
			s.parked[hostID] = append(s.parked[hostID], a.name)
		}
		id = a.link.next
	}
}
