package engine

import (
	"math"
	"slices"
	"time"

	"urlserver/hostslots"
)

// Which spider gets a document.
//
// A spider's wait is how long it has taken from a document's line to its DONE, on average, of late:
// by Little's law that is the documents it has open over the rate at which it answers. While it has
// documents and does not answer, its wait is at least as long as it has been silent, so one that
// hangs is noticed before anything times out.
//
// A document goes to the spider with room whose wait, times the documents that it would have then,
// is least. So spiders that are equally quick have equally many, and one that needs 10 s a document
// beside one that needs 20 ms has one for each 500 of the other. A host slot stays with its spider
// unless that has become much slower than the best.
//
// A spider that has not answered yet gets few documents, and more with each answer. One that is
// alone in its pool gets all that it may have (there is no better use for them), unless it has been
// silent for long.
//
// One whose socket takes no lines gets none. One that is too slow to get anything is tried again
// from time to time with one document.

const (
	firstFew        = 8                // documents at a spider that has not answered, beside others
	fewPerDone      = 2                // more for each answer
	unansweredAfter = 10 * time.Second // a spider without any answer for so long gets few even where it is alone
	muchSlower      = 4                // times the best spider's wait: a slot leaves its spider
	leastWait       = time.Millisecond // a shorter wait counts as this
	mostWait        = time.Hour        // a longer wait counts as this
	// the wait assumed of a spider without an answer to which a slot might go from another one
	unknownWait = 250 * time.Millisecond
	recently    = 5 * time.Second // an answer's weight falls by e in that time
	// times its wait: a slow spider is idle for so long before it is tried again
	tryFactor  = 8
	stuckAfter = 10 * time.Millisecond // a spider whose lines wait for so long for its socket gets no more
	leastTry   = time.Second           // a slow spider is idle for at least this long before it is tried again
)

// recent has the latest answers of one spider; older ones weigh less.
type recent struct {
	answers float64       // the number of answers, older ones weighed less
	took    float64       // the sum of their times from line to DONE, in ns, weighed likewise
	at      time.Duration // the last answer
	heard   time.Duration // the last answer, or the last document sent while the spider owed no answer
	owes    bool          // some document was sent after the one that the spider answered last
	newest  time.Duration // when the last document was sent
	first   time.Duration // when it got its first document
}

func (r *recent) answered(now, took time.Duration) {
	if now > r.at {
		keep := math.Exp(-float64(now-r.at) / float64(recently))
		r.answers *= keep
		r.took *= keep
		r.at = now
	}
	r.answers++
	r.took += float64(took)
	r.heard, r.owes = now, r.newest > now-took
}

// sent notes that the spider got a document. idle: it had none.
func (r *recent) sent(now time.Duration, idle bool) {
	if idle || !r.owes {
		r.heard = now
	}
	r.owes, r.newest = true, now
}

// working notes that the spider goes on with a document. If it has answered others, it does not
// count as silent then.
func (r *recent) working() {
	if r.answers > 0 {
		r.owes = false
	}
}

// wait returns how long a spider takes for a document.
func (sp *spider) wait(now time.Duration) time.Duration {
	w := leastWait
	if sp.recent.answers > 0 {
		w = max(w, time.Duration(sp.recent.took/sp.recent.answers))
	}
	if sp.inFlight > 0 && sp.recent.owes {
		w = max(w, now-sp.recent.heard)
	}
	return min(w, mostWait)
}

// cost orders the spiders that a document may go to; the least is first.
func (sp *spider) cost(now time.Duration) time.Duration {
	if faulty(FaultChoice) {
		return 0
	}
	return time.Duration(sp.inFlight+1) * sp.wait(now)
}

// window returns how many documents a spider may have, judged by its answers.
func (e *Engine) window(sp *spider) int {
	most := e.mostAt(sp)
	silent := sp.done == 0 && sp.inFlight > 0 && e.now-sp.recent.first >= unansweredAfter
	if e.spiders.pools.all[sp.pool].connected <= 1 && !silent || faulty(FaultChoice) {
		return most
	}
	return int(min(uint64(most), firstFew+fewPerDone*sp.done))
}

// mayHave reports whether a spider may get a document.
func (e *Engine) mayHave(sp *spider) bool {
	return sp.listens(e.now) && (sp.inFlight < e.allowance(sp) || faulty(FaultRoom))
}

// anyUnanswered reports whether some spider gets nothing only because it has not answered enough.
// It costs O(spiders).
func (e *Engine) anyUnanswered() bool {
	return slices.ContainsFunc(e.spiders.byID, func(sp *spider) bool {
		return sp != nil && !sp.gone && sp.notBefore == 0 && sp.done == 0 &&
			sp.inFlight < e.mostAt(sp) && sp.inFlight >= e.window(sp)
	})
}

// anyStuck reports whether some spider gets nothing because its socket takes no lines. It costs
// O(spiders).
func (ss *spiders) anyStuck(now time.Duration) bool {
	return slices.ContainsFunc(ss.byID, func(sp *spider) bool { return sp != nil && !sp.gone && sp.stuck(now) })
}

// updateSpider updates a spider's place in its pool after anything about it has changed.
func (e *Engine) updateSpider(id uint32, sp *spider) {
	c := &e.spiders.pools.all[sp.pool]
	if !e.mayHave(sp) || e.isReserved(id, sp) {
		e.spiders.removeReady(id, sp)
		return
	}
	has := c.ready.Has(id)
	if !has {
		e.spiders.withRoom++
	}
	if !has || c.connected > 1 {
		c.ready.Set(id, sp.cost(e.now))
	}
	switch idle := sp.inFlight == 0 && c.connected > 1; {
	case !idle:
		c.tries.Remove(id)
	case !c.tries.Has(id):
		e.tryLater(c, id, sp)
	}
}

// removeReady removes a spider from those of its pool that a document may go to.
func (ss *spiders) removeReady(id uint32, sp *spider) {
	c := &ss.pools.all[sp.pool]
	if c.ready.Has(id) {
		ss.withRoom--
		c.ready.Remove(id)
		c.tries.Remove(id)
	}
}

// updatePool updates all spiders of a pool after anything about it has changed.
func (e *Engine) updatePool(no uint32) {
	for id, sp := range e.spiders.byID {
		if sp != nil && sp.pool == no {
			e.updateSpider(uint32(id), sp)
		}
	}
}

// countConnected counts a spider into a pool, or out of it by -1. A spider that is alone has
// another window.
func (e *Engine) countConnected(no uint32, by int) {
	c := &e.spiders.pools.all[no]
	before := c.connected
	c.connected += by
	if before == 1 || c.connected == 1 {
		e.updatePool(no)
	}
}

// tryLater sets when an idle spider is tried if it is slow.
func (e *Engine) tryLater(c *spiderPool, id uint32, sp *spider) {
	c.tries.Set(id, e.now+max(leastTry, tryFactor*sp.wait(e.now)))
}

// spiderFor chooses the spider for a document; 0: none has room.
func (e *Engine) spiderFor(t hostslots.Selection) uint32 {
	c := e.spiders.poolFor(spiderPoolOf(t.Pool))
	best := e.quickest(c)
	if c.ready.Len() <= 1 {
		return best
	}
	limit := muchSlower * e.spiders.byID[best].wait(e.now)
	if id, at, ok := c.tries.Min(); ok && at <= e.now {
		if e.spiders.byID[id].wait(e.now) > limit && !e.spiders.byID[id].stuck(e.now) {
			return id
		}
		e.tryLater(c, id, e.spiders.byID[id])
	}
	if e.spiders.byID[best].recent.answers == 0 {
		limit = max(limit, muchSlower*unknownWait)
	}
	if last := t.Spider; c.ready.Has(last) {
		if sp := e.spiders.byID[last]; !sp.stuck(e.now) && sp.wait(e.now) <= limit {
			return last
		}
	}
	return best
}

// quickest returns the spider of a pool that costs least; 0: none has room. Costs grow with
// silence, without an event. A spider whose cost has more than doubled is moved to its new place,
// so each spider moves O(log) times between two of its events. A spider that is stuck is removed
// until Written.
func (e *Engine) quickest(c *spiderPool) uint32 {
	for {
		id, was, ok := c.ready.Min()
		if !ok {
			return 0
		}
		sp := e.spiders.byID[id]
		if sp.stuck(e.now) {
			e.spiders.removeReady(id, sp)
			continue
		}
		now := sp.cost(e.now)
		if now <= max(2*was, was+leastWait) {
			return id
		}
		c.ready.Set(id, now)
	}
}

// stuck reports whether a spider's socket has not taken its lines for a while. It gets no more
// until it has: lines that wait together reach it in one burst, however far apart they were
// decided on, and several of them may be for one group.
func (sp *spider) stuck(now time.Duration) bool {
	return sp.writingSince >= 0 && now-sp.writingSince > stuckAfter && !faulty(FaultWire)
}
