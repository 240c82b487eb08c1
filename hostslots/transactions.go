package hostslots

import "time"

// Lookup returns what the name of a transaction stands for, and if it is live the transaction.
func (s *Slots) Lookup(name TransID) (TransState, Transaction) { return s.table.lookup(name) }

// Working restarts the status timeout of a live transaction.
func (s *Slots) Working(now time.Duration, name TransID) {
	s.table.working(now, s.table.live(name))
}

// Done ends a live transaction. It returns its document, which the caller must End before anything
// else is sent: End reschedules the group. The status of the fetch and the Retry-After that the host
// asked for are 0 if they are not known.
func (s *Slots) Done(
	now time.Duration, name TransID, status int, retryAfter time.Duration,
) (doc uint32) {
	id := s.table.live(name)
	tx := *s.table.transactions.At(id)
	f := Feedback{Took: now - tx.sent, Status: status, RetryAfter: retryAfter}
	s.closeTransaction(now, id, &f)
	return tx.doc
}

// closeTransaction ends a transaction. f is as for Slots.ended.
func (s *Slots) closeTransaction(now time.Duration, id uint32, f *Feedback) {
	hostID := s.table.transactions.At(id).host
	s.groups.At(s.hosts.At(hostID).group).sent--
	s.table.close(id)
	s.ended(now, hostID, f)
}

// LinesWritten reports that the lines of the documents that were sent to a spider at or after from
// reached its connection only now. It moves the times of these requests by the same delay: the
// first one counts as sent now, and the distances between them stay. So no gap begins before now,
// and the groups do not fall into step.
func (s *Slots) LinesWritten(now time.Duration, spider uint32, from time.Duration) {
	for id := s.table.newest(spider); id != 0; id = s.table.older(id) {
		tx := s.table.transactions.At(id)
		if tx.sent < from {
			return
		}
		s.requested(now, tx.host, now+tx.sent-from)
	}
}

// MarkRequested counts now as the last request to the host of a live transaction.
func (s *Slots) MarkRequested(now time.Duration, name TransID) {
	s.requested(now, s.table.transactions.At(s.table.live(name)).host, now)
}

// requested counts a request to a host at the given moment.
func (s *Slots) requested(now time.Duration, hostID uint32, at time.Duration) {
	s.counted(at, hostID)
	s.updateTurn(hostID)
	h := s.hosts.At(hostID)
	s.reschedule(now, h.group)
	if h.above != 0 {
		s.reschedule(now, h.above)
	}
}

// IgnoreSilenceUntil keeps transactions from being overdue before the given moment. It is for a
// daemon that could not read for some time what spiders sent.
func (s *Slots) IgnoreSilenceUntil(until time.Duration) {
	s.table.ignoreSilence = max(s.table.ignoreSilence, until)
}

// Overdue returns a spider with an overdue transaction; 0: none has one. The caller ends the
// spider's connection and takes back all its documents by Lost.
func (s *Slots) Overdue(now time.Duration) (spider uint32, how Lateness) {
	for _, id := range [...]uint32{s.table.byStatus.head, s.table.byAge.head} {
		if id == 0 {
			continue
		}
		if how = s.table.lateness(now, id); how != InTime {
			return s.table.transactions.At(id).spider, how
		}
	}
	return 0, InTime
}

// Lost ends the latest transaction of a spider that has gone and returns its document, which the
// caller passes to Requeue or End; 0 if the spider has no transaction. As the latest comes first,
// repeated calls put the documents back in the order in which they were sent.
func (s *Slots) Lost(now time.Duration, spider uint32) (doc uint32, how Lateness) {
	id := s.table.newest(spider)
	if id == 0 {
		return 0, InTime
	}
	doc, how = s.table.transactions.At(id).doc, s.table.lateness(now, id)
	s.closeTransaction(now, id, nil)
	return doc, how
}

// Blame is how the loss of a transaction counts for its document.
type Blame uint8

const (
	None   Blame = iota // the sending does not count as an attempt
	Shared              // it counts, but not as the last attempt: others may have been the cause
	Whole               // it counts
)

// Requeue queues a document that Lost returned for the pool, before younger ones. If the document
// has had Config.MaxAttempts it returns true instead, and the caller must End it.
func (p Pool) Requeue(now time.Duration, doc uint32, blame Blame) (over bool) {
	s := p.s
	d := s.docs.At(doc)
	d.order |= resent
	switch most := s.cfg.MaxAttempts; {
	case blame == None:
		d.addAttempts(-1)
	case blame == Shared && d.attempts() >= most:
		d.addAttempts(most - 1 - d.attempts())
	case blame == Whole:
		over = d.attempts() >= most && !faulty(FaultAttempts)
	}
	over = over || faulty(FaultLose)
	group := s.groupOfDoc(doc)
	if !over {
		s.changePool(doc, p.no)
		s.enqueue(doc)
		s.moveHostToFront(s.hostOfDoc(doc))
	}
	if faulty(FaultRetry) {
		s.groups.At(group).pace.last, s.hosts.At(s.hostOfDoc(doc)).site.last = 0, 0
	}
	s.reschedule(now, group)
	return over
}

// moveHostToFront makes a host the next one in the rotation of its group.
func (s *Slots) moveHostToFront(id uint32) {
	h := s.hosts.At(id)
	if !h.inRotation {
		return
	}
	if rotation := &s.groups.At(h.group).rotation; rotation.head != id {
		s.dispatch.places.remove(rotation, id)
		s.dispatch.places.pushFront(rotation, id)
	}
}

// InFlight calls yield with the documents in flight that were sent at the given moment or before.
// It looks at no more than most transactions, beginning with from. next is the value of from for
// the next call; 0: all transactions have been looked at. A
// document that is sent or ends between two calls may be left out. None comes twice, since a
// document that is sent again is sent after the given moment.
func (s *Slots) InFlight(
	from, most uint32, sent time.Duration, yield func(doc uint32),
) (next uint32) {
	end := uint32(s.table.transactions.Cap())
	until := min(max(from, 1)+most, end)
	for id := max(from, 1); id < until; id++ {
		if tx := s.table.transactions.At(id); tx.doc != 0 && tx.sent <= sent {
			yield(tx.doc)
		}
	}
	if until >= end {
		return 0
	}
	return until
}
