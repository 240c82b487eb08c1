package hostslots

import (
	"net/netip"
	"time"
)

// OwnQueue is the queue that a request of the daemon's own, for robots.txt, waits in. The requests
// of one queue do not hold up those of the other.
type OwnQueue uint8

const (
	FirstTry OwnQueue = iota // the last request of this sort did not fail, or there was none
	Retry                    // it failed

	OwnQueues = int(Retry) + 1
)

// ownWaiting is an own request without its host.
type ownWaiting struct {
	name  uint32
	queue OwnQueue
}

// ownRequest is an own request that waits in a queue of its group.
type ownRequest struct {
	host uint32
	ownWaiting
	link   link // in its group's queue
	byHost link // in its host's waiting requests
}

// QueueOwnRequest queues a request of the daemon's own to the host: one hop of a robots.txt fetch.
// It is sent at the pace of the host's group, before the group's documents, and needs no slot. The
// caller chooses its name, which NextOwnRequest returns. While the host has no group or is blocked
// the request waits.
func (h Host) QueueOwnRequest(now time.Duration, name uint32, queue OwnQueue) {
	s, r := h.s, h.record()
	r.own++
	s.sweeper.update(h.id, r)
	s.dispatch.closed[h.id] = append(s.dispatch.closed[h.id], ownWaiting{name, queue})
	s.updateTurn(h.id)
	if r.turn == turnAble {
		s.resumeOwnRequests(h.id)
	}
	s.rescheduleHost(now, h.id)
}

// resumeOwnRequests puts the waiting requests of a host into the queues of its group.
func (s *Slots) resumeOwnRequests(hostID uint32) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	waiting := s.dispatch.waiting[hostID]
	for _, w := range s.dispatch.closed[hostID] {
		id := s.dispatch.requests.New()
		*s.dispatch.requests.At(id) = ownRequest{host: hostID, ownWaiting: w}
		s.dispatch.own.pushBack(&g.own[w.queue], id)
		s.dispatch.hostOwn.pushBack(&waiting, id)
	}
	s.dispatch.setWaiting(hostID, waiting)
	delete(s.dispatch.closed, hostID)
}

// suspendOwnRequests takes the waiting requests of a host out of the queues of its group.
func (s *Slots) suspendOwnRequests(hostID uint32) {
	for id := s.dispatch.waiting[hostID].head; id != 0; id = s.dispatch.waiting[hostID].head {
		s.takeOwn(id, true)
	}
}

// setWaiting sets the own requests of a host that wait in the queues of its group.
func (d *dispatch) setWaiting(hostID uint32, requests list) {
	if requests.head == 0 {
		delete(d.waiting, hostID)
	} else {
		d.waiting[hostID] = requests
	}
}

// takeOwn takes a request out of the queue of its group. With suspend it puts it into dispatch.closed.
func (s *Slots) takeOwn(id uint32, suspend bool) ownRequest {
	d := &s.dispatch
	o := *d.requests.At(id)
	waiting := d.waiting[o.host]
	d.own.remove(&s.groups.At(s.hosts.At(o.host).group).own[o.queue], id)
	d.hostOwn.remove(&waiting, id)
	d.setWaiting(o.host, waiting)
	d.requests.Free(id)
	if suspend {
		d.closed[o.host] = append(d.closed[o.host], o.ownWaiting)
	}
	return o
}

// RetractOwnRequests removes the queued requests whose names are chosen, and returns those names.
func (h Host) RetractOwnRequests(
	now time.Duration, chosen func(name uint32) bool,
) (names []uint32) {
	s, r := h.s, h.record()
	if r.group != 0 {
		s.suspendOwnRequests(h.id)
	}
	stay := s.dispatch.closed[h.id][:0]
	for _, w := range s.dispatch.closed[h.id] {
		if chosen(w.name) {
			names = append(names, w.name)
		} else {
			stay = append(stay, w)
		}
	}
	if s.dispatch.closed[h.id] = stay; len(stay) == 0 {
		delete(s.dispatch.closed, h.id)
	}
	r.own -= uint32(len(names))
	if s.updateTurn(h.id); r.turn == turnAble {
		s.resumeOwnRequests(h.id)
	}
	s.sweeper.update(h.id, r)
	s.rescheduleHost(now, h.id)
	return names
}

// NextOwnRequest starts a request of the group that has been due longest, and returns its name and
// the address that it goes to. If ok is false, no request is due: wait is the time until one will
// be, or until a document of a group that the call has woken will be; 0: that takes another event.
func (s *Slots) NextOwnRequest(now time.Duration, queue OwnQueue) (
	name uint32, addr netip.Addr, wait time.Duration, ok bool,
) {
	groupID, wait := s.nextOwn(now, queue)
	if groupID == 0 {
		if _, due, any := s.dispatch.ready.Min(); any && s.dispatch.woken {
			wait = sooner(wait, due-now)
		}
		s.dispatch.woken = false
		return 0, netip.Addr{}, wait, false
	}
	g := s.groups.At(groupID)
	o := s.takeOwn(g.own[queue].head, false)
	g.ownOpen++
	s.began(now, o.host)
	return o.name, s.addr(o.host), 0, true
}

// NextOwnRequestHost returns the host of the request that NextOwnRequest would start; 0: none is
// due.
func (s *Slots) NextOwnRequestHost(now time.Duration, queue OwnQueue) (hostID uint32) {
	groupID, _ := s.nextOwn(now, queue)
	if groupID == 0 {
		return 0
	}
	return s.dispatch.requests.At(s.groups.At(groupID).own[queue].head).host
}

// nextOwn returns the group whose first request in a queue is next. If none is due it returns 0,
// and how long until one is.
func (s *Slots) nextOwn(now time.Duration, queue OwnQueue) (groupID uint32, wait time.Duration) {
	s.pacer.now = max(s.pacer.now, now)
	s.expireLeases(now)
	s.wake(now)
	for range mostPassed {
		groupID, due, any := s.dispatch.ownReady[queue].Min()
		if !any {
			return 0, s.untilWake(now)
		}
		if due > now {
			return 0, sooner(s.untilWake(now), due-now)
		}
		g := s.groups.At(groupID)
		if g.revision == s.cfg.revision &&
			s.isRequestable(now, s.dispatch.requests.At(g.own[queue].head).host) {
			return groupID, 0
		}
		s.reschedule(now, groupID)
	}
	return 0, 1
}

// OwnRequestSent makes the gaps of a request that NextOwnRequest started count from now, when the
// request leaves the daemon. If no request to the host is open, it does nothing.
func (h Host) OwnRequestSent(now time.Duration) {
	if h.record().open > 0 {
		h.s.requested(now, h.id, now)
	}
}

// OwnRequestDone ends a request that NextOwnRequest started. The gaps of its site and of its
// address count from now, that of a shared network from NextOwnRequest.
func (h Host) OwnRequestDone(now time.Duration, f Feedback) {
	s, r := h.s, h.record()
	g := s.groups.At(r.group)
	g.ownOpen--
	site, _ := s.sitePace(r)
	site.requested(now) // it may have been sent some time after NextOwnRequest
	if g.kind == ofAddress {
		g.pace.requested(now)
	}
	r.own--
	s.ended(now, h.id, &f)
	s.reschedule(now, r.group)
	s.sweeper.update(h.id, r)
}
