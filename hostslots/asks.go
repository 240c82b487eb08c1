package hostslots

import (
	"net/netip"
	"time"
)

// Try says which queue a request of the daemon's own waits in. Each queue is for itself, so that the
// requests of one do not hold up those of the other.
type OwnQueue uint8

const (
	FirstTry OwnQueue = iota // the last request of this sort did not fail, or there was none
	Retry                    // it failed

	OwnQueues = int(Retry) + 1
)

// waiting is a request that is in no group's line.
type waiting struct {
	name uint32
	try  OwnQueue
}

// Ask queues a request of the daemon's own to a host: one hop of a robots.txt
// fetch. It goes out under the pace of the host's group, before the group's
// documents and without needing a slot. name is the caller's, for NextAsk to
// give back. While the host is not bound, or blocked or barred, the request waits.
func (s *Slots) queueOwnRequest(now time.Duration, hostID, name uint32, try OwnQueue) {
	s.hosts.At(hostID).asks++
	s.idleChanged(hostID)
	s.parked[hostID] = append(s.parked[hostID], waiting{name, try})
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
	for _, w := range s.parked[hostID] {
		id := s.asks.New()
		*s.asks.At(id) = ask{host: hostID, waiting: w}
		s.byAsk.pushBack(&g.asks[w.try], id)
	}
	delete(s.parked, hostID)
}

// Retract takes the waiting requests to a host back whose names are chosen, and returns those names.
func (s *Slots) retractOwnRequests(now time.Duration, hostID uint32, chosen func(name uint32) bool) (names []uint32) {
	id := s.hosts.At(hostID).group
	if id != 0 {
		s.park(hostID)
	}
	names = s.retract(hostID, chosen)
	if id != 0 {
		s.unpark(hostID)
		s.place(now, id)
	}
	return names
}

func (s *Slots) retract(hostID uint32, chosen func(name uint32) bool) (names []uint32) {
	stay := s.parked[hostID][:0]
	for _, w := range s.parked[hostID] {
		if chosen(w.name) {
			names = append(names, w.name)
		} else {
			stay = append(stay, w)
		}
	}
	if s.parked[hostID] = stay; len(stay) == 0 {
		delete(s.parked, hostID)
	}
	s.hosts.At(hostID).asks -= uint32(len(names))
	s.idleChanged(hostID)
	return names
}

// NextAsk starts the request of a queue whose group has been due longest, and returns its
// name and where it goes. Where none is due, wait is how long until one is, and
// 0 where none will be without some other event.
func (s *Slots) NextOwnRequest(now time.Duration, try OwnQueue) (name uint32, addr netip.Addr, wait time.Duration, ok bool) {
	s.lapse(now)
	for {
		groupID, due, any := s.asked[try].Min()
		if !any {
			return 0, netip.Addr{}, 0, false
		}
		if due > now {
			return 0, netip.Addr{}, due - now, false
		}
		g := s.groups.At(groupID)
		if g.settings != s.settings {
			s.place(now, groupID)
			continue
		}
		id := g.asks[try].head
		a := *s.asks.At(id)
		s.byAsk.remove(&g.asks[try], id)
		s.asks.Free(id)
		if s.hosts.At(a.host).shut() {
			s.parked[a.host] = append(s.parked[a.host], a.waiting)
			s.place(now, groupID)
			continue
		}
		g.asked++
		s.hosts.At(a.host).open++
		g.last = now
		s.place(now, groupID)
		return a.name, s.addr(a.host), 0, true
	}
}

// Asked ends a request that NextAsk started to the host. The group's gap counts
// from here.
func (s *Slots) ownRequestDone(now time.Duration, hostID uint32, f Feedback) {
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
