package engine

import (
	"time"

	"urlserver/internal/container/timeheap"
)

// A name that fails for now (Options.ForNow) is looked up again after pauses that grow, until it is found, or does not exist,
// or has failed for resolver.give_up: then what waits for it ends. Where no name server can be used (Options.Down) that
// says nothing of the name, and no time counts.
//
// Names that fail hold up nobody: their documents may be half of what may wait for names, an index that takes documents
// back gets the others of them, and all of these hosts are left out of the next requests to the index, until they are found
// or given up. Few of their look-ups are out at a time, so that names that were never asked come first.
const (
	firstPause = 2 * time.Second // until a name that failed is looked up again; doubles
	mostPause  = time.Minute
	downPause  = 5 * time.Second // the most while no name server can be used
	downRest   = time.Second     // between two rounds of look-ups then
	downTries  = 4               // look-ups again that are out then
	triesShare = 4               // of resolver.concurrency that look-ups again may take: one in so many
	spreads    = 16              // names that fail together are looked up again apart: their pauses differ by up to half
	maxFailing = 1 << 20         // names; with more the index is not asked
)

// names are the hosts whose look-up fails for now.
type names struct {
	failing map[uint32]*failing // each host is pinned
	tries   timeheap.Heap       // hosts that no look-up is out for, by when to look up again, or to forget them
	trying  int                 // look-ups again that are out
	down    bool                // the last answer was that no name server can be used
	heard   time.Duration       // when there was another one last
	lost    time.Duration       // for so long none could be used, before that
	restTo  time.Duration       // until then nothing is looked up again
}

// failing is a name that fails for now.
type failing struct {
	err   error         // of the last look-up
	first time.Duration // the first failure that counts
	since time.Duration // when that was by the clock that stands while no name server can be used
	last  time.Duration // the last one
	pause time.Duration // until the next look-up; 0: there was none yet
	next  time.Duration // it
	down  bool          // no name server could be used when it was looked up last, so nothing counts
	out   bool          // a look-up again is out
	away  bool          // its documents were given back to the index, which leaves it out
	over  bool          // it was given up; what comes of it ends, but for a look-up now and then
}

// isDown reports whether a look-up failed because no name server can be used.
func (e *Engine) isDown(err error) bool { return err != nil && e.opt.Down != nil && e.opt.Down(err) }

// isForNow reports whether a look-up that failed may be answered later.
func (e *Engine) isForNow(err error) bool {
	return err != nil && e.opt.ForNow != nil && e.opt.ForNow(err) || e.isDown(err)
}

// heard notes the end of a look-up: whether name servers can be used. Where they cannot, they could not since the last
// answer, as far as anybody knows.
func (e *Engine) heard(err error) {
	n := &e.names
	if e.isDown(err) {
		n.down, n.restTo = true, e.now+downRest
		return
	}
	if n.down {
		n.lost += e.now - n.heard
	}
	n.down, n.heard = false, e.now
}

// counted is the time, by a clock that stands while no name server can be used.
func (e *Engine) counted() time.Duration {
	if e.names.down {
		return e.names.heard - e.names.lost
	}
	return e.now - e.names.lost
}

// left is how long a name that fails is still borne.
func (e *Engine) left(f *failing) time.Duration {
	return e.cfg.Resolver.GiveUp - (e.counted() - f.since)
}

// failsForNow has a name that something waits for be looked up again, or given up.
func (e *Engine) failsForNow(host uint32, err error) {
	f := e.names.failing[host]
	if f == nil {
		f = &failing{down: true} // so that time counts from now
		e.names.failing[host] = f
		e.slots.Host(host).Pin()
	}
	if f.down || e.now-f.last > e.cfg.Resolver.GiveUp {
		f.first, f.since = e.now, e.counted()
	}
	f.err, f.last, f.down = err, e.now, e.isDown(err)
	if !f.down && (e.left(f) <= 0 || faulty(faultGiveUp)) {
		e.abandon(host, f)
		return
	}
	f.over = false
	e.slots.Host(host).SetFailing(true)
	f.pause = min(max(firstPause, 2*f.pause), mostPause)
	if f.down {
		f.pause = min(f.pause, downPause)
	}
	f.next = e.now + f.pause + f.pause*time.Duration(host%spreads)/(2*spreads)
	if !f.down {
		f.next = min(f.next, e.now+e.left(f))
	}
	e.names.tries.Set(host, f.next)
	e.unload(host, f)
}

// abandon ends what waits for a name that has failed for too long.
func (e *Engine) abandon(host uint32, f *failing) {
	f.over, f.away, f.pause = true, false, 0
	e.slots.Host(host).SetFailing(false)
	e.names.tries.Set(host, e.now+e.cfg.Resolver.GiveUp)
	e.giveUp(host, f.err)
}

// found says that a host's name fails no more, or that nobody wants to know.
func (e *Engine) found(host uint32) {
	if e.names.failing[host] == nil {
		return
	}
	delete(e.names.failing, host)
	e.names.tries.Remove(host)
	e.slots.Host(host).SetFailing(false)
	e.slots.Host(host).Unpin()
}

// awaits deals with a document that has come for a host whose name fails.
func (e *Engine) awaits(host uint32, f *failing) {
	switch {
	case !f.over:
		e.unload(host, f)
	case !e.names.down && e.now < f.last+mostPause:
		e.giveUp(host, f.err)
	case !f.out:
		e.names.tries.Set(host, e.now)
	}
}

// unload gives the documents of a host whose name fails back to the index, where those of such hosts are too many.
func (e *Engine) unload(host uint32, f *failing) {
	if e.slots.Host(host).Docs() == 0 || faulty(faultIntake) || !f.away && (!e.opt.Exact || e.slots.Counts().Failing <= e.failingMost()) {
		return
	}
	f.away = true
	e.slots.Host(host).Fail()
}

// waitingMost is how many documents may wait for their hosts' names; failingMost, of hosts whose names fail.
func (e *Engine) waitingMost() int { return max(4*e.cfg.DocIndex.Batch, e.cfg.QueueCount) }
func (e *Engine) failingMost() int { return min(e.waitingMost(), e.cfg.Leftover.Max) / 2 }

// isAway reports whether documents of a host go back to the index as they come.
func (e *Engine) isAway(host uint32) bool {
	f := e.names.failing[host]
	return f != nil && f.away
}

// namesHaveRoom reports whether more documents may wait for their hosts' names. An index that takes nothing back may have
// given more of failing ones than it should, as it does not know them: these do not count, unless none can be found now.
func (e *Engine) namesHaveRoom() bool {
	c := e.slots.Counts()
	failing := min(c.Failing, e.failingMost())
	if e.names.down && !e.opt.Exact || faulty(faultIntake) {
		failing = c.Failing
	}
	return c.Unresolved-c.Failing+failing < e.waitingMost() && len(e.names.failing) < maxFailing
}

// lookAgain looks names up again that failed, a few at a time.
func (e *Engine) lookAgain(due *waiter) {
	n := &e.names
	most := max(1, e.cfg.Resolver.Concurrency/triesShare)
	if n.down {
		most = downTries
	}
	for {
		host, at, ok := n.tries.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		f := n.failing[host]
		switch {
		case !f.away && !e.slots.Host(host).Needed():
			e.found(host)
			continue
		case n.trying >= most: // an answer is to come
			return
		case n.down && n.restTo > e.now:
			due.after(n.restTo - e.now)
			return
		}
		n.tries.Remove(host)
		f.out = true
		n.trying++
		e.lookUp(string(e.slots.Host(host).Name()))
	}
}
