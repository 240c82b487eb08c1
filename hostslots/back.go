package hostslots

import "time"

// Back ends a live transaction whose spider gave the document back without a request for it. The
// sending does not count as an attempt, but the group's gap counts from it. Back returns the
// document, which the caller must pass to Pool.QueueLast, Pool.Hold or Slots.End.
func (s *Slots) Back(now time.Duration, name TransID) (doc uint32) {
	id := s.table.live(name)
	doc = s.table.transactions.At(id).doc
	s.closeTransaction(now, id, nil)
	d := s.docs.At(doc)
	if !faulty(FaultBackAttempt) {
		d.addAttempts(-1)
	}
	d.order |= resent
	group := s.groupOfDoc(doc)
	if faulty(FaultBackPace) {
		s.groups.At(group).pace.last, s.hosts.At(s.hostOfDoc(doc)).site.last = 0, 0
	}
	s.reschedule(now, group)
	return doc
}

// QueueLast puts a document that is in no queue into its origin's queue for the pool, behind all
// documents of the same priority.
func (p Pool) QueueLast(now time.Duration, doc uint32) {
	s := p.s
	s.changePool(doc, p.no)
	const behindArrival = 1<<17 - 1
	d := s.docs.At(doc)
	d.order = s.dispatch.queues.nextArrival()<<17 | d.order&behindArrival
	s.enqueue(doc)
	s.rescheduleHost(now, s.hostOfDoc(doc))
}

// Hold puts a document that is in no queue into its origin's queue for the pool, and closes that
// queue: Next returns no document of it. Slots.Dequeue ends the hold. The caller must use the pool
// for held documents only.
func (p Pool) Hold(now time.Duration, doc uint32) {
	p.s.changePool(doc, p.no)
	p.s.origins.At(p.s.docs.At(doc).origin).closed |= forCaller
	p.QueueLast(now, doc)
}
