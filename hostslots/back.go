package hostslots

import "time"

// Back ends a live transaction whose document was not requested, and returns the document, for the
// caller to queue (Pool.QueueLast), hold (Pool.Hold) or End. The sending is no attempt. The group's
// gap counts from it.
func (s *Slots) Back(now time.Duration, name TransID) (doc uint32) {
	id := s.table.live(name)
	doc = s.table.transactions.At(id).doc
	s.closeTransaction(now, id, nil)
	d := s.docs.At(doc)
	if !faulty(faultBackAttempt) {
		d.addAttempts(-1)
	}
	d.order |= resent
	group := s.groupOfDoc(doc)
	if faulty(faultBackPace) {
		s.groups.At(group).pace.last, s.hosts.At(s.hostOfDoc(doc)).site.last = 0, 0
	}
	s.reschedule(now, group)
	return doc
}

// QueueLast queues a document that is not queued for the pool, behind all that have its priority.
func (p Pool) QueueLast(now time.Duration, doc uint32) {
	s := p.s
	s.changePool(doc, p.no)
	const behindArrival = 1<<17 - 1
	d := s.docs.At(doc)
	d.order = s.dispatch.queues.nextArrival()<<17 | d.order&behindArrival
	s.enqueue(doc)
	s.rescheduleHost(now, s.hostOfDoc(doc))
}

// Hold queues a document that is not queued for the pool, whose documents are not sent. The caller
// uses the pool for nothing else. Dequeue ends the hold.
func (p Pool) Hold(now time.Duration, doc uint32) {
	p.s.changePool(doc, p.no)
	p.s.origins.At(p.s.docs.At(doc).origin).closed |= forCaller
	p.QueueLast(now, doc)
}
