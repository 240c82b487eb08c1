package hostslots

import (
	"math"
	"time"
)

// Refuse takes the document of a turn out of the queue, for the caller to End.
// It costs the group nothing.
func (s *Slots) DequeueSelected(now time.Duration, t Selection) {
	s.pop(t.lane)
	s.place(now, t.Group)
}

// Hold keeps the documents of an origin back, or lets them go on.
func (s *Slots) SetRobotsPending(now time.Duration, originID uint32, held bool) {
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
func (s *Slots) IgnoreSilenceUntil(until time.Duration) { s.hear = max(s.hear, until) }

// silent is when a transaction has been without a status for too long, aged when it has taken too long.
func (s *Slots) silent(id uint32) time.Duration {
	return max(s.txs.At(id).status+s.cfg.StatusTimeout, s.hear)
}

func (s *Slots) aged(id uint32) time.Duration {
	if s.cfg.MaxFetch == 0 {
		return math.MaxInt64
	}
	return max(s.txs.At(id).sent+s.cfg.MaxFetch, s.hear)
}

// Lateness says whether a transaction has taken too long, and how.
type Lateness uint8

const (
	InTime  Lateness = iota
	Silent           // without a status for Config.StatusTimeout
	Endless          // it goes on for Config.MaxFetch
)

func (s *Slots) lateness(now time.Duration, id uint32) Lateness {
	switch {
	case now >= s.aged(id): // first: a transaction that is silent may have company to blame
		return Endless
	case now >= s.silent(id):
		return Silent
	}
	return InTime
}

// Overdue is a spider with a transaction that has taken too long; 0: none has one. The caller is to end its connection and
// to take all back that it has, by Lost.
func (s *Slots) Overdue(now time.Duration) (spider uint32, how Lateness) {
	for _, id := range [...]uint32{s.statuses.head, s.ages.head} {
		if id == 0 {
			continue
		}
		if how = s.lateness(now, id); how != InTime {
			return s.txs.At(id).spider, how
		}
	}
	return 0, InTime
}

// Lost ends one transaction of a spider that has gone: the last that it got, so that the first one is in front again in
// the end. Its document is for the caller to Back or End; doc is 0 where there is none.
func (s *Slots) Lost(now time.Duration, spider uint32) (doc uint32, how Lateness) {
	if int(spider) >= len(s.spiders) || s.spiders[spider].tail == 0 {
		return 0, InTime
	}
	id := s.spiders[spider].tail
	doc, how = s.txs.At(id).doc, s.lateness(now, id)
	s.close(id)
	return doc, how
}

// Blame is what the loss of a transaction counts for its document.
type Blame uint8

const (
	None   Blame = iota // nothing: the send was no attempt
	Shared              // an attempt, but not the last that it may have: others may have been the cause
	Whole               // an attempt
)

// Back queues a document that Lost gave out again, before younger ones, for the spiders of a crew. Where it has had all
// its attempts, it does not: over is true, and the document is for the caller to End.
func (s *Slots) Requeue(now time.Duration, doc, crew uint32, blame Blame) (over bool) {
	d := s.docs.At(doc)
	d.order |= resent
	switch most := s.cfg.MaxAttempts; {
	case blame == None:
		d.attempt(-1)
	case blame == Shared && d.attempts() >= most:
		d.attempt(most - 1 - d.attempts())
	case blame == Whole:
		over = d.attempts() >= most && !faulty(faultAttempts)
	}
	over = over || faulty(faultLose)
	g := s.groupOf(doc)
	if !over {
		s.relane(doc, crew)
		s.push(doc)
		s.putFirst(doc)
	}
	if faulty(faultRetry) {
		s.groups.At(g).last = 0
	}
	s.place(now, g)
	return over
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
func (s *Slots) failHost(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.group != 0 || h.failed || h.docs == 0 {
		return
	}
	h.failed = true
	s.failed = append(s.failed, hostID)
}

// Failed takes one document of a host that was given up, for the caller to End.
// doc is 0 where there is none.
func (s *Slots) NextFailed() (doc, host uint32) {
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
func (s *Slots) DequeueAny(from uint32) (doc, next uint32) {
	for o := max(from, 1); int(o) < s.origins.Cap(); o++ {
		if s.origins.At(o).queue != 0 {
			return s.pop(o), o
		}
	}
	return 0, 0
}

// Owed is how long the group of a document has to be left alone from now on, and the gap that it wants between two
// requests, where that is more than the ordinary one; 0: not at all, and none.
func (s *Slots) RemainingWait(now time.Duration, doc uint32) (pause, gap time.Duration) {
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
	s.renewSome(now)
	s.fill(now)
	s.sweep(now)
	return s.Wait(now)
}

// Wait is how long until settings that have changed go on to be put in force, a block, a claim or a transaction's patience ends, or a slow
// group has to make room; 0: none will without some other event.
func (s *Slots) Wait(now time.Duration) time.Duration {
	next := time.Duration(0)
	if s.renewing != 0 {
		next = 1
	}
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
	if id := s.ages.head; id != 0 && s.cfg.MaxFetch > 0 {
		next = sooner(next, s.aged(id)-now)
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
