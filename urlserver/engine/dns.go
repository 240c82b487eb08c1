package engine

import (
	"net/netip"
	"time"

	"urlserver/internal/container/timeheap"
)

// A name that fails for now (Options.ForNow) is looked up again after growing pauses until it
// resolves, does not exist, or has failed for resolver.give_up. Then the documents that wait for
// it end. While no name server can be reached (Options.Down), no time counts.
//
// Failing names hold up no others. Their documents may take at most half of the room for documents
// that wait for names. An index that takes documents back gets the rest, and all failing hosts are
// left out of the next requests to the index. Few of their look-ups are under way at a time, so
// that new names come first.
const (
	firstPause = 2 * time.Second // until a name that failed is looked up again; doubles
	mostPause  = time.Minute
	downPause  = 5 * time.Second // the most while no name server can be used
	downRest   = time.Second     // between two groups of look-ups then
	downTries  = 4               // look-ups of failing names under way then
	triesShare = 4               // look-ups of failing names may take 1/triesShare of resolver.concurrency
	spreads    = 16              // pauses have this many lengths, up to half longer, so that look-ups spread
	maxFailing = 1 << 20         // names; with more the index is not asked
)

// dns is the engine's part of the forward mapping: the look-ups under way, the names that fail for
// now, and when addresses are looked up again. Package resolver caches the answers
// (Options.Cached), and package hostslots has each host's address and group.
type dns struct {
	lookups    map[string]struct{} // names whose answer is to come
	failing    map[uint32]*failing // by host; each host is pinned
	retries    timeheap.Heap       // failing hosts with no look-up under way, by when to look up or forget them
	retrying   int                 // look-ups of failing names that are under way
	down       bool                // the last answer was that no name server can be used
	answeredAt time.Duration       // when the last other answer came
	downFor    time.Duration       // how long no name server could be used before that, in all
	restUntil  time.Duration       // no failing name is looked up before
	addresses  addresses
}

func newDNS() dns {
	return dns{
		lookups: map[string]struct{}{}, failing: map[uint32]*failing{},
		addresses: addresses{checking: map[uint32]time.Duration{}, moved: map[uint32]netip.Addr{}},
	}
}

// failing is a name that fails for now.
type failing struct {
	err       error         // of the last look-up
	first     time.Duration // the first failure that counts
	since     time.Duration // the same by failingClock
	last      time.Duration // the last failure
	pause     time.Duration // until the next look-up; 0: there was none yet
	next      time.Duration // the next look-up
	down      bool          // no name server could be reached at the last look-up, so nothing counts
	lookingUp bool          // it is being looked up again
	returning bool          // its documents went back to the index, which leaves it out
	givenUp   bool          // its documents end, except for a look-up now and then
}

// isDown reports whether a look-up failed because no name server can be used.
func (e *Engine) isDown(err error) bool { return err != nil && e.opt.Down != nil && e.opt.Down(err) }

// isTemporary reports whether a look-up that failed may be answered later.
func (e *Engine) isTemporary(err error) bool {
	return err != nil && e.opt.ForNow != nil && e.opt.ForNow(err) || e.isDown(err)
}

// lookupEnded notes whether name servers can be reached. If not, the time since the last answer
// counts as time without name servers.
func (e *Engine) lookupEnded(err error) {
	n := &e.dns
	if e.isDown(err) {
		n.down, n.restUntil = true, e.now+downRest
		return
	}
	if n.down {
		n.downFor += e.now - n.answeredAt
	}
	n.down, n.answeredAt = false, e.now
}

// failingClock is a clock that stands while no name server can be reached.
func (d *dns) failingClock(now time.Duration) time.Duration {
	if d.down {
		return d.answeredAt - d.downFor
	}
	return now - d.downFor
}

// timeLeft returns how long a failing name has until the engine gives it up.
func (e *Engine) timeLeft(f *failing) time.Duration {
	return e.cfg.Resolver.GiveUp - (e.dns.failingClock(e.now) - f.since)
}

// failForNow schedules the next look-up of a name that documents wait for, or gives it up.
func (e *Engine) failForNow(host uint32, err error) {
	f := e.dns.failing[host]
	if f == nil {
		f = &failing{down: true} // so that time counts from now
		e.dns.failing[host] = f
		e.slots.Host(host).Pin()
	}
	if f.down || e.now-f.last > e.cfg.Resolver.GiveUp {
		f.first, f.since = e.now, e.dns.failingClock(e.now)
	}
	f.err, f.last, f.down = err, e.now, e.isDown(err)
	if !f.down && (e.timeLeft(f) <= 0 || faulty(FaultGiveUp)) {
		e.giveUpName(host, f)
		return
	}
	f.givenUp = false
	e.slots.Host(host).SetFailing(true)
	f.pause = min(max(firstPause, 2*f.pause), mostPause)
	if f.down {
		f.pause = min(f.pause, downPause)
	}
	f.next = e.now + f.pause + f.pause*time.Duration(host%spreads)/(2*spreads)
	if !f.down {
		f.next = min(f.next, e.now+e.timeLeft(f))
	}
	e.dns.retries.Set(host, f.next)
	e.returnFailing(host, f)
}

// giveUpName ends what waits for a name that has failed for too long.
func (e *Engine) giveUpName(host uint32, f *failing) {
	f.givenUp, f.returning, f.pause = true, false, 0
	e.slots.Host(host).SetFailing(false)
	e.dns.retries.Set(host, e.now+e.cfg.Resolver.GiveUp)
	e.failHost(host, f.err)
}

// nameFound ends the failure of a host's name: it resolves, or nothing waits for it.
func (e *Engine) nameFound(host uint32) {
	if e.dns.failing[host] == nil {
		return
	}
	delete(e.dns.failing, host)
	e.dns.retries.Remove(host)
	e.slots.Host(host).SetFailing(false)
	e.slots.Host(host).Unpin()
}

// docOfFailing deals with a document that has come for a host whose name fails.
func (e *Engine) docOfFailing(host uint32, f *failing) {
	switch {
	case !f.givenUp:
		e.returnFailing(host, f)
	case !e.dns.down && e.now < f.last+mostPause:
		e.failHost(host, f.err)
	case !f.lookingUp:
		e.dns.retries.Set(host, e.now)
	}
}

// returnFailing returns the documents of a failing host to the index if failing hosts have too
// many.
func (e *Engine) returnFailing(host uint32, f *failing) {
	if e.slots.Host(host).Docs() == 0 || faulty(FaultIntake) ||
		!f.returning && (!e.opt.Exact || e.slots.Counts().Failing <= e.failingMost()) {
		return
	}
	f.returning = true
	e.slots.Host(host).Fail()
}

// waitingMost bounds the documents that wait for their hosts' names, failingMost those of failing
// hosts.
func (e *Engine) waitingMost() int { return max(4*e.cfg.DocIndex.Batch, e.cfg.QueueCount) }
func (e *Engine) failingMost() int { return min(e.waitingMost(), e.cfg.Leftover.Max) / 2 }

// isReturning reports whether documents of a host go back to the index as they come.
func (d *dns) isReturning(host uint32) bool {
	f := d.failing[host]
	return f != nil && f.returning
}

// namesHaveRoom reports whether more documents may wait for their hosts' names. An index that
// takes nothing back does not know which names fail, and may have given too many documents of
// those: they count only up to failingMost, unless no name can be resolved now.
func (e *Engine) namesHaveRoom() bool {
	c := e.slots.Counts()
	failing := min(c.Failing, e.failingMost())
	if e.dns.down && !e.opt.Exact || faulty(FaultIntake) {
		failing = c.Failing
	}
	return c.Unresolved-c.Failing+failing < e.waitingMost() && len(e.dns.failing) < maxFailing
}

// retryLookups looks failing names up again, a few at a time.
func (e *Engine) retryLookups(due *waiter) {
	n := &e.dns
	most := max(1, e.cfg.Resolver.Concurrency/triesShare)
	if n.down {
		most = downTries
	}
	for {
		host, at, ok := n.retries.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		f := n.failing[host]
		switch {
		case !f.returning && !e.slots.Host(host).Needed():
			e.nameFound(host)
			continue
		case n.retrying >= most: // an answer is to come
			return
		case n.down && n.restUntil > e.now:
			due.after(n.restUntil - e.now)
			return
		}
		n.retries.Remove(host)
		f.lookingUp = true
		n.retrying++
		e.lookUp(string(e.slots.Host(host).Name()))
	}
}
