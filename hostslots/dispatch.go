package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
	"urlserver/leftover"
)

// dispatch has the orders in which documents, hosts, groups and own requests are taken, and the
// groups that wait for a slot.
type dispatch struct {
	queues    docHeaps
	anyFrom   uint32 // DequeueAny looks from here on: no queue with a smaller number has a document
	offering  offering
	places    links[host]              // hosts in the rotation of their group, or in line above it
	wakes     timeheap.Heap            // groups with waiting hosts, by when the first is due
	caps      timeheap.Heap            // groups with hosts in line, by when the first may go
	woken     bool                     // a group has entered ready since the last look by Next or NextOwnRequest
	ready     timeheap.Heap            // groups with a document that may be sent, by when they are due
	ownReady  [OwnQueues]timeheap.Heap // groups with own requests, likewise
	requests  slab.Slab[ownRequest]
	own       links[ownRequest]       // own requests that wait in their group
	hostOwn   links[ownRequest]       // the same, by their hosts
	closed    map[uint32][]ownWaiting // by host: own requests that are in no group's queue
	waiting   map[uint32]list         // by host: own requests that are in its group's queues
	slotQueue leftover.Queue          // groups that wait for a slot, by when one is of use to them
	readAhead int                     // calls of Next until readNextAhead reads again
	read      uint32                  // a sum over records, so that the compiler keeps the reads
	notReady  recordList[group]       // groups with a slot that they cannot use for Config.Patience
	quotaUsed recordList[group]       // groups that have sent Config.Len documents from their slot
}

func (d *dispatch) init(r *registry) {
	d.queues.docs = &r.docs
	d.offering.init(r)
	d.places = newLinks(&r.hosts, func(h *host) *link { return &h.place })
	d.own = newLinks(&d.requests, func(o *ownRequest) *link { return &o.link })
	d.hostOwn = newLinks(&d.requests, func(o *ownRequest) *link { return &o.byHost })
	d.closed, d.waiting = map[uint32][]ownWaiting{}, map[uint32]list{}
	d.notReady = newRecordList(&r.groups, func(g *group) *link { return &g.notReady })
	d.quotaUsed = newRecordList(&r.groups, func(g *group) *link { return &g.quotaUsed })
}

// setNotReady sets whether a group is one with a slot that it cannot use soon.
func (d *dispatch) setNotReady(id uint32, g *group, in bool) {
	if g.isNotReady != in {
		g.isNotReady = in
		d.notReady.set(id, in)
	}
}

// setQuotaUsed sets whether a group is one that has sent Config.Len documents from its slot.
func (d *dispatch) setQuotaUsed(id uint32, g *group, in bool) {
	if g.hasUsedQuota != in {
		g.hasUsedQuota = in
		d.quotaUsed.set(id, in)
	}
}

// Selection is a document that may be sent now.
type Selection struct {
	Group, Host, Origin, Doc uint32
	Pool                     uint32        // the spider pool that the document is for; 0: any spider
	Due                      time.Duration // the moment since which it may be sent
	Spider                   uint32        // the spider that got the slot's last document; 0: none
	queue                    uint32
}

// Next returns a document of the group that has been due longest. If ok is false, no group is due:
// wait is the time until one will be, or 0 if that takes another event. Before it calls Next again,
// the caller must pass the document to Send, DequeueSelected or Suspend, or call
// Origin.SetRobotsPending for its origin.
func (s *Slots) Next(now time.Duration) (sel Selection, wait time.Duration, ok bool) {
	s.pacer.now = max(s.pacer.now, now)
	s.expireLeases(now) // one may have ended since the last Tick
	s.wake(now)
	s.dispatch.woken = false
	for range mostPassed {
		id, due, any := s.dispatch.ready.Min()
		if !any {
			return Selection{}, s.untilWake(now), false
		}
		if due > now {
			return Selection{}, sooner(s.untilWake(now), due-now), false
		}
		g := s.groups.At(id)
		if g.revision == s.cfg.revision && s.isRequestable(now, g.rotation.head) {
			s.readNextAhead()
			return s.selection(id, s.hosts.At(g.rotation.head).first), 0, true
		}
		s.reschedule(now, id) // it may not be due by the settings that are in force now
	}
	return Selection{}, 1, false
}

// mostPassed bounds how many hosts a call passes over that may not be requested, so that no call
// takes long. The next call goes on.
const mostPassed = 256

// selection selects the first document of an origin or pool queue of a group in the ready heap.
func (s *Slots) selection(groupID, queue uint32) Selection {
	o := s.origins.At(queue)
	return Selection{
		Group: groupID, Host: o.host, Origin: s.originOf(queue), Doc: o.queue, Pool: o.pool,
		Due: s.dispatch.ready.Due(groupID), Spider: s.table.slots[s.groups.At(groupID).slot-1].spider,
		queue: queue,
	}
}

// Send marks the selected document as sent to a spider. The caller numbers the spiders, with small
// numbers other than 0.
func (s *Slots) Send(now time.Duration, sel Selection, spider uint32) TransID {
	o, h, g := s.origins.At(sel.queue), s.hosts.At(sel.Host), s.groups.At(sel.Group)
	s.docs.At(s.dispatch.queues.pop(&o.queue)).addAttempts(1)
	s.dispatch.offering.update(sel.queue, true)
	if h.inRotation && g.rotation.head != g.rotation.tail { // the group's other hosts are next
		s.dispatch.places.remove(&g.rotation, sel.Host)
		s.dispatch.places.pushBack(&g.rotation, sel.Host)
	}
	g.sent++
	id := s.table.open(now, sel.Doc, sel.Host, g.slot-1, spider)
	s.began(now, sel.Host)
	return id
}

// DequeueSelected takes the selected document out of its queue, for the caller to End. That does
// not count as a request.
func (s *Slots) DequeueSelected(now time.Duration, sel Selection) {
	s.dequeueFirst(sel.queue)
	s.reschedule(now, sel.Group)
}

// updateSlot gives a group with documents an empty slot or a place in the slot queue, and takes
// both from a group without documents.
func (s *Slots) updateSlot(now time.Duration, id uint32, g *group) {
	switch {
	case g.docs == 0 && g.slot != 0:
		s.releaseSlot(now, id, g)
	case g.docs == 0:
		s.dispatch.slotQueue.Leave(id)
	case g.slot == 0 && s.table.firstEmpty != 0:
		s.assignSlot(now, id, g)
	case g.slot == 0:
		s.dispatch.slotQueue.Wait(id, s.slotUsefulFrom(now, id, g))
	}
}

// slotUsefulFrom returns the moment from which a group without a slot could use one. A group that
// waits in the slot queue by a moment that has passed keeps that moment, and so its place in the
// queue.
func (s *Slots) slotUsefulFrom(now time.Duration, id uint32, g *group) time.Duration {
	due := s.usableFrom(g)
	if due == math.MaxInt64 {
		return due
	}
	if denied := s.deniedLease(id, g); denied != 0 {
		due = max(due, s.leases.ends.Due(denied))
	}
	queue := &s.dispatch.slotQueue
	if due <= now && queue.Waits(id) && queue.From(id) <= now {
		return queue.From(id)
	}
	return max(due, now)
}

// assignSlot gives an empty slot to a group.
func (s *Slots) assignSlot(now time.Duration, id uint32, g *group) {
	g.slot = s.table.assign(now, id) + 1
	s.dispatch.slotQueue.Leave(id)
	s.pacer.cooldowns.Remove(id)
	s.docsChanged(id)
}

// releaseSlot empties the slot of a group, which keeps its pace.
func (s *Slots) releaseSlot(now time.Duration, id uint32, g *group) {
	s.table.release(g.slot - 1)
	g.slot = 0
	if faulty(FaultForget) {
		g.pace.last, g.pace.notBefore = 0, 0
	}
	if due := s.pacer.groupDue(g); due > now {
		s.pacer.cooldowns.Set(id, due)
	}
	s.docsChanged(id)
}

// assignSlots gives slots to the groups that wait for one: empty slots, and those of groups that
// can be preempted.
func (s *Slots) assignSlots(now time.Duration) {
	for {
		id, from, ok := s.dispatch.slotQueue.First()
		if !ok {
			return
		}
		g := s.groups.At(id)
		if s.table.firstEmpty == 0 && (s.deniedLease(id, g) != 0 || !s.preemptFor(now, from)) {
			return
		}
		s.assignSlot(now, id, g)
		s.updateGroup(now, id)
	}
}

// isNotReady reports whether a group cannot use its slot for longer than Config.Patience. None of
// its documents is at a spider then.
func (s *Slots) isNotReady(now time.Duration, id uint32, g *group) bool {
	return g.slot != 0 && g.sent == 0 && (s.deniedLease(id, g) != 0 || s.usableFrom(g)-now > s.cfg.Patience)
}

// hasUsedQuota reports whether a group has sent Config.Len documents from its slot and none is at
// a spider. preemptFor then gives the slot to a group that waits, so that a group that gets more
// and more documents does not keep its slot for ever.
func (s *Slots) hasUsedQuota(g *group) bool {
	return g.slot != 0 && g.sent == 0 && s.table.slots[g.slot-1].sent >= uint32(s.cfg.Len)
}

// preemptFor empties a slot for a group that could use it from the given moment. It takes the slot
// of a group that is not ready or, if the moment has come, of a group that has used its quota. It
// returns false if there is no such slot.
func (s *Slots) preemptFor(now, from time.Duration) bool {
	if from == math.MaxInt64 || from-now > s.cfg.Patience {
		return false
	}
	for notReady := &s.dispatch.notReady; notReady.head != 0; {
		id := notReady.head
		g := s.groups.At(id)
		s.dispatch.setNotReady(id, g, false)
		if s.isNotReady(now, id, g) {
			s.preempt(now, id)
			return true
		}
	}
	if from > now || s.dispatch.quotaUsed.head == 0 {
		return false
	}
	s.preempt(now, s.dispatch.quotaUsed.head)
	return true
}

// preempt empties the slot of a group, which waits for one again.
func (s *Slots) preempt(now time.Duration, id uint32) {
	g := s.groups.At(id)
	s.dispatch.setNotReady(id, g, false)
	s.dispatch.setQuotaUsed(id, g, false)
	s.dispatch.ready.Remove(id)
	s.releaseSlot(now, id, g)
	if g.lease.state == leased { // another daemon may have the group meanwhile
		s.leases.update(id, g)
	}
	s.dispatch.slotQueue.Wait(id, s.slotUsefulFrom(now, id, g))
}

// maxLooks bounds how many groups or hosts HasRoom looks at, so that no call takes long.
const maxLooks = 16

// HasRoom reports whether a new group could have a slot: one is empty, or a group cannot use its
// slot for longer than Config.Patience. If it returns true, no waiting group could use the slot.
func (s *Slots) HasRoom(now time.Duration) bool {
	if s.table.firstEmpty != 0 {
		return true
	}
	id := s.dispatch.notReady.head
	for range maxLooks {
		if id == 0 {
			return false
		}
		g := s.groups.At(id)
		due := s.pacer.groupDue(g)
		if from := s.usableFrom(g); from < math.MaxInt64 {
			due = from
		}
		if s.isNotReady(now, id, g) && (due-now > s.cfg.Patience || s.isAtRest(g)) {
			return true
		}
		id = s.dispatch.notReady.next(id)
	}
	return false
}

// isAtRest reports whether nothing of a group may be sent and nothing is under way that would
// change that: its hosts are blocked, or wait for their robots.txt to be tried again.
func (s *Slots) isAtRest(g *group) bool {
	if g.rotation.head != 0 || g.hasOwn() || g.open() > 0 || g.waits != 0 || g.inLine > 0 {
		return false
	}
	id := g.members.head
	for range maxLooks {
		if id == 0 {
			return true
		}
		if s.hosts.At(id).pins > 0 {
			return false
		}
		id = s.members.next(id)
	}
	return true
}
