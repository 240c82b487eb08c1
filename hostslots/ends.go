package hostslots

import (
	"math"
	"time"
)

// Refuse takes the document of a turn out of the queue, for the caller to End.
// It costs the group nothing.
func (s *Slots) Refuse(now time.Duration, t Turn) {
	s.pop(t.lane)
	s.place(now, t.Group)
}

// Hold keeps the documents of an origin back, or lets them go on.
func (s *Slots) Hold(now time.Duration, originID uint32, held bool) {
	for id := s.hosts.At(s.HostOf(originID)).origins; id != 0; id = s.origins.At(id).next {
		if o := s.origins.At(id); id == originID || o.base == originID {
			before := o.offers()
			o.held = held
			s.offersChanged(o, before)
		}
	}
	s.placeOrigin(now, originID)
}

// Hear has no silence count before the given moment.
func (s *Slots) Hear(until time.Duration) { s.hear = max(s.hear, until) }

// silent is when a transaction has been without a status for too long.
func (s *Slots) silent(id uint32) time.Duration {
	return max(s.txs.At(id).status+s.cfg.StatusTimeout, s.hear)
}

// Expired takes one document whose spider has been silent for too long. It is
// queued again, before younger ones, or, after too many sends, over is true
// and it is for the caller to End. doc is 0 where there is none.
func (s *Slots) Expired(now time.Duration) (doc, spider uint32, over bool) {
	id := s.statuses.head
	if id == 0 || now < s.silent(id) {
		return 0, 0, false
	}
	spider = s.txs.At(id).spider
	doc, over = s.retry(now, id)
	return doc, spider, over
}

// Lost does the same for one document of a spider that has gone: the last that
// it got, so that in the end the first one is in front again.
func (s *Slots) Lost(now time.Duration, spider uint32) (doc uint32, over bool) {
	if int(spider) >= len(s.spiders) || s.spiders[spider].tail == 0 {
		return 0, false
	}
	return s.retry(now, s.spiders[spider].tail)
}

// Spared is Lost where the sending was no attempt: it went to nobody who would fetch it.
func (s *Slots) Spared(now time.Duration, spider uint32) (doc uint32) {
	if int(spider) >= len(s.spiders) || s.spiders[spider].tail == 0 {
		return 0
	}
	id := s.spiders[spider].tail
	s.docs.At(s.txs.At(id).doc).spare()
	doc, _ = s.retry(now, id)
	return doc
}

func (s *Slots) retry(now time.Duration, id uint32) (doc uint32, over bool) {
	doc = s.txs.At(id).doc
	g := s.groupOf(doc)
	s.close(id)
	over = s.docs.At(doc).attempts() >= s.cfg.MaxAttempts && !faulty(faultAttempts) || faulty(faultLose)
	if !over {
		s.push(doc)
		s.putFirst(doc)
	}
	if faulty(faultRetry) {
		s.groups.At(g).last = 0
	}
	s.place(now, g)
	return doc, over
}

// putFirst makes the host of a document the next one in its group.
func (s *Slots) putFirst(doc uint32) {
	id := s.origins.At(s.docs.At(doc).origin).host
	turns := &s.groups.At(s.hosts.At(id).group).turns
	if s.byTurn.has(turns, id) {
		s.byTurn.remove(turns, id)
		s.byTurn.pushFront(turns, id)
	}
}

// Fail gives up on a host that has no address: its documents come out through
// Failed. A host that is bound is left alone.
func (s *Slots) Fail(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.group != 0 || h.failed || h.docs == 0 {
		return
	}
	h.failed = true
	s.failed = append(s.failed, hostID)
}

// Failed takes one document of a host that was given up, for the caller to End.
// doc is 0 where there is none.
func (s *Slots) Failed() (doc, host uint32) {
	for len(s.failed) > 0 {
		host = s.failed[len(s.failed)-1]
		h := s.hosts.At(host)
		if h.failed {
			for o := h.origins; o != 0; o = s.origins.At(o).next {
				if s.origins.At(o).queue != 0 {
					return s.pop(o), host
				}
			}
		}
		h.failed = false
		s.failed = s.failed[:len(s.failed)-1]
	}
	return 0, 0
}

// Withdraw takes a queued document out, for the caller to End, looking from an origin's number on; next is where to
// go on. doc is 0 where there is none: next begins anew then.
func (s *Slots) Withdraw(from uint32) (doc, next uint32) {
	for o := max(from, 1); int(o) < s.origins.Cap(); o++ {
		if s.origins.At(o).queue != 0 {
			return s.pop(o), o
		}
	}
	return 0, 0
}

// Owed is how long the group of a document has to be left alone from now on, and the gap that it wants between two
// requests, where that is more than the ordinary one; 0: not at all, and none.
func (s *Slots) Owed(now time.Duration, doc uint32) (pause, gap time.Duration) {
	id := s.groupOf(doc)
	if id == 0 {
		return 0, 0
	}
	g := s.groups.At(id)
	if gap = s.gap(g); gap <= s.cfg.Gap {
		gap = 0
	}
	return max(0, s.due(g)-now), gap
}

// Tick does what time alone brings about: blocks end, and slow groups make room
// for others. wait is that of Wait.
func (s *Slots) Tick(now time.Duration) (wait time.Duration) {
	s.unblock(now)
	s.lapse(now)
	s.fill(now)
	s.Sweep(now)
	return s.Wait(now)
}

// Wait is how long until a block, a claim or a transaction's patience ends, or a slow
// group has to make room; 0: none will without some other event.
func (s *Slots) Wait(now time.Duration) time.Duration {
	next := time.Duration(0)
	if _, due, ok := s.block.Min(); ok {
		next = sooner(next, due-now)
	}
	if _, due, ok := s.claims.Min(); ok {
		next = sooner(next, due-now)
	}
	if _, until, ok := s.lingers.Min(); ok {
		next = sooner(next, until-now)
	}
	if id := s.statuses.head; id != 0 {
		next = sooner(next, s.silent(id)-now)
		if faulty(faultSilence) {
			next += time.Second
		}
	}
	if _, from, ok := s.left.First(); ok && s.slow.head != 0 && from-now > s.cfg.Patience {
		next = sooner(next, from-now-s.cfg.Patience)
	}
	if _, from, ok := s.left.First(); ok && s.spent.head != 0 && from > now && from < math.MaxInt64 {
		next = sooner(next, from-now)
	}
	return next
}

// sooner is the lesser of two waits, where 0 stands for none.
func sooner(a, b time.Duration) time.Duration {
	b = max(b, 1)
	if a == 0 || b < a {
		return b
	}
	return a
}
