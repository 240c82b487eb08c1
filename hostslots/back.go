package hostslots

import "time"

// Back ends a live transaction whose document was not requested, and returns the document, for the
// caller to QueueLast, Hold or End. The sending is no attempt. The group's gap counts from it.
func (s *Slots) Back(now time.Duration, name TransID) (doc uint32) {
	id := s.table.live(name)
	doc = s.table.transactions.At(id).doc
	s.closeTransaction(now, id, nil)
	d := s.docs.At(doc)
	d.addAttempts(-1)
	d.order |= resent
	s.reschedule(now, s.groupOfDoc(doc))
	return doc
}

// QueueLast queues a document that is not queued, for a spider pool and behind all that have its
// priority.
func (s *Slots) QueueLast(now time.Duration, doc, pool uint32) {
	s.changePool(doc, pool)
	const behindArrival = 1<<17 - 1
	d := s.docs.At(doc)
	d.order = s.dispatch.queues.nextArrival()<<17 | d.order&behindArrival
	s.enqueue(doc)
	s.rescheduleHost(now, s.hostOfDoc(doc))
}

// Hold queues a document that is not queued for a pool whose documents are not sent. The caller
// uses the pool for nothing else. Dequeue and QueueLast end the hold.
func (s *Slots) Hold(now time.Duration, doc, pool uint32) {
	s.changePool(doc, pool)
	s.origins.At(s.docs.At(doc).origin).held = true
	s.QueueLast(now, doc, pool)
}
