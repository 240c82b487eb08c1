package hostslots

import (
	"net/netip"
	"time"
)

// Ask queues a request of the daemon's own to a host: one hop of a robots.txt
// fetch. It goes out under the pace of the host's group, before the group's
// documents and without needing a slot. name is the caller's, for NextAsk to
// give back. While the host is not bound, or blocked or barred, the request waits.
func (s *Slots) Ask(now time.Duration, hostID, name uint32) {
	s.hosts.At(hostID).asks++
	s.idleChanged(hostID)
	s.parked[hostID] = append(s.parked[hostID], name)
	s.unpark(hostID)
	s.placeHost(now, hostID)
}

// unpark puts a host's waiting requests into the line of its group.
func (s *Slots) unpark(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.asks == 0 || h.group == 0 || h.shut() {
		return
	}
	g := s.groups.At(h.group)
	for _, name := range s.parked[hostID] {
		id := s.asks.New()
		*s.asks.At(id) = ask{host: hostID, name: name}
		s.byAsk.pushBack(&g.asks, id)
	}
	delete(s.parked, hostID)
}

// Unask takes the waiting requests to a host that is not bound back, and
// returns their names.
func (s *Slots) Unask(hostID uint32) (names []uint32) {
	h := s.hosts.At(hostID)
	if h.group != 0 {
		return nil
	}
	names = s.parked[hostID]
	delete(s.parked, hostID)
	h.asks -= uint32(len(names))
	s.idleChanged(hostID)
	return names
}

// NextAsk starts the request whose group has been due longest, and returns its
// name and where it goes. Where none is due, wait is how long until one is, and
// 0 where none will be without some other event.
func (s *Slots) NextAsk(now time.Duration) (name uint32, addr netip.Addr, wait time.Duration, ok bool) {
	s.lapse(now)
	for {
		groupID, due, any := s.asked.Min()
		if !any {
			return 0, netip.Addr{}, 0, false
		}
		if due > now {
			return 0, netip.Addr{}, due - now, false
		}
		g := s.groups.At(groupID)
		id := g.asks.head
		a := *s.asks.At(id)
		s.byAsk.remove(&g.asks, id)
		s.asks.Free(id)
		if s.hosts.At(a.host).shut() {
			s.parked[a.host] = append(s.parked[a.host], a.name)
			s.place(now, groupID)
			continue
		}
		g.asked++
		s.hosts.At(a.host).open++
		g.last = now
		s.place(now, groupID)
		return a.name, s.Addr(a.host), 0, true
	}
}

// Asked ends a request that NextAsk started to the host. The group's gap counts
// from here.
func (s *Slots) Asked(now time.Duration, hostID uint32, f Feedback) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	g.asked--
	s.closed(hostID)
	g.last = now // the request may have left later than NextAsk let it go
	s.learn(now, g, f)
	h.asks--
	s.idleChanged(hostID)
	s.place(now, h.group)
}
