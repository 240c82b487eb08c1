package engine

import (
	"math"
	"time"

	"urlserver/hostslots"
)

// A document that was in flight at a spider that died may be what killed it. Each time it is sent
// again it has fewer others beside it, so that it is alone at its last attempt: after a loss of n
// documents with k attempts left there are about n^((k-1)/k) together. So 501 documents of
// which one kills spiders cost three lost connections with three attempts: one with all, one with
// 23, and one with that document alone.
//
// The slots have queues of their own for suspects. While no spider of the pool has so few documents
// in flight, suspects are suspended there. They go out in the order in which they were suspended,
// to at most half of the spiders of their pool. An idle spider takes one at once. Otherwise the
// quickest spider gets nothing else until the first suspect fits: a slow one would keep them all
// waiting. A distrusted spider gets suspects only while nothing else is due, as it has to prove
// itself first.
//
// A spider that has reported WORKING on a document for a status timeout is not killed by it. Such a
// document no longer limits what else the spider gets, or else a long fetch would keep suspects
// waiting for spider.max_fetch. A suspect has this exemption once. If it is lost again after that,
// it is alone the next time until its fetch has ended.

// suspect is a document that was in flight at a spider that has gone, until it ends.
type suspect struct {
	company int    // documents that may be in flight where it is, itself among them
	at      uint32 // the spider that it is at, and that gets few documents for it; 0: none
	lived   bool   // a spider worked at it for a status timeout once, and others were let join it
}

// returned is what was known of a document when it went back to the index. Where no spider is
// connected and others use the index, all goes back: a document that kills spiders would come again
// as if it were new, with as much company, and never end.
type returned struct {
	attempts int
	suspect  suspect
	isOne    bool // it is a suspect
	at       time.Duration
}

const (
	rememberReturned = time.Hour
	mostReturned     = 1 << 16 // documents; then all are forgotten
)

// remember notes what is known of a document that goes back to the index.
func (ss *spiders) remember(id []byte, doc uint32, attempts int, now time.Duration) {
	s, isOne := ss.suspects[doc]
	if attempts == 0 && !isOne {
		return
	}
	if len(ss.returned) >= mostReturned {
		clear(ss.returned)
	}
	s.at = 0
	ss.returned[string(id)] = returned{attempts, s, isOne, now}
}

// recollect returns what was known of a document that comes from the index, and forgets it.
func (ss *spiders) recollect(id []byte, now time.Duration) returned {
	r, ok := ss.returned[string(id)]
	if !ok {
		return returned{}
	}
	delete(ss.returned, string(id))
	if now-r.at >= rememberReturned {
		return returned{}
	}
	return r
}

// company counts the suspects at a spider by how many documents may be in flight there.
type company map[int]int

// least returns the fewest documents that a suspect allows; most if there is no suspect.
func (c company) least(most int) int {
	for n := range c { // whatever the order
		most = min(most, n)
	}
	return most
}

// poolQueue returns the number that the slots have for the documents of a spider pool, or for its
// suspects.
func poolQueue(pool uint32, suspect bool) (queue uint32) {
	if suspect {
		return poolQueues*pool + 1
	}
	return poolQueues * pool
}

// heldQueue returns the number that the slots have for the documents of a spider pool that are held
// (back.go).
func heldQueue(pool uint32) (queue uint32) { return poolQueues*pool + 2 }

const poolQueues = 3 // numbers of a spider pool

func spiderPoolOf(queue uint32) uint32 { return queue / poolQueues }

func forSuspects(queue uint32) bool { return queue%poolQueues == 1 }

func forHeld(queue uint32) bool { return queue%poolQueues == 2 }

// suspect notes that a document was in flight at a spider that has gone, and may have been the
// cause.
func (e *Engine) suspect(doc uint32, how *loss) {
	s, known := e.spiders.suspects[doc]
	if _, long := how.long[doc]; long {
		s.lived = true
	}
	least := companyOf(max(1, how.docs-len(how.long)), e.cfg.Spider.MaxAttempts-e.slots.Doc(doc).Attempts)
	if !known || least < s.company {
		s.company = least
	}
	e.spiders.suspects[doc] = s
}

// companyOf is how many of the documents that were in flight may be so when one of them is tried
// again that has some attempts left.
func companyOf(docs, left int) int {
	if left <= 1 {
		return 1
	}
	n := math.Ceil(math.Pow(float64(docs), float64(left-1)/float64(left)))
	return max(1, min(int(n), (docs+1)/2))
}

// joined notes that a document is at a spider now.
func (ss *spiders) joined(doc, id uint32) {
	s, ok := ss.suspects[doc]
	if !ok {
		return
	}
	s.at = id
	ss.suspects[doc] = s
	sp := ss.byID[id]
	if sp.company == nil {
		sp.company = company{}
	}
	sp.company[s.company]++
}

// parted notes that a document is no longer at a spider.
func (ss *spiders) parted(doc uint32) {
	s, ok := ss.suspects[doc]
	if !ok || s.at == 0 {
		return
	}
	sp := ss.byID[s.at]
	if sp.company[s.company]--; sp.company[s.company] == 0 {
		delete(sp.company, s.company)
	}
	s.at = 0
	ss.suspects[doc] = s
}

// worked notes that a spider said WORKING of a document that it has had for a status timeout.
// Once, a suspect lets others join it then.
func (e *Engine) worked(sp *spider, tx hostslots.Transaction) {
	if e.now-tx.Sent < e.cfg.TimeoutSpiderStatus {
		return
	}
	doc := tx.Doc
	if s, ok := e.spiders.suspects[doc]; ok && s.at != 0 {
		if s.lived {
			return
		}
		s.lived = true
		e.spiders.suspects[doc] = s
		e.spiders.parted(doc)
	}
	if sp.longFetches == nil {
		sp.longFetches = map[uint32]struct{}{}
	}
	sp.longFetches[doc] = struct{}{}
}

// trySuspects sends suspended suspects to spiders with few enough documents. last says that
// nothing else is due.
func (e *Engine) trySuspects(budget *int, due *waiter, last bool) {
	if len(e.spiders.suspects) == 0 && e.spiders.reserved == 0 {
		return
	}
	cost := 1 + len(e.spiders.byID)/64 // each look at all spiders counts, so that no step takes long
	for no := range e.spiders.pools.all {
		queue, c := poolQueue(uint32(no), true), e.spiders.poolFor(uint32(no))
		for *budget > 0 && e.slots.Pool(queue).Suspended() {
			*budget -= cost
			doc := e.slots.Pool(queue).FirstSuspended()
			id := uint32(0)
			if doc != 0 {
				if id = e.tester(c, queue, e.spiders.suspects[doc].company, last); id == 0 {
					break
				}
			}
			if t, ok := e.slots.Pool(queue).ResumeFirst(e.now); ok {
				e.dispatchTo(t, id)
			}
		}
		e.keepReserved(c, due)
	}
}

// tester chooses a spider of a pool that may have a document among so few, or reserves one; 0:
// none may have it now.
func (e *Engine) tester(c *spiderPool, queue uint32, company int, last bool) uint32 {
	var best, free uint32
	most := max(1, c.connected/2)
	for i := range e.spiders.byID {
		id, sp := uint32(i), e.spiders.byID[i]
		if sp == nil || &e.spiders.pools.all[sp.pool] != c || !sp.listens(e.now) || sp.distrusted() && !last ||
			e.mostAt(sp) == 0 {
			continue
		}
		if len(sp.company) == 0 {
			if free == 0 || e.triesSooner(c, queue, id, free, company) {
				free = id
			}
			continue
		}
		most--
		if e.fits(c, queue, id, company) {
			return id
		}
		if best == 0 || e.triesSooner(c, queue, id, best, company) {
			best = id
		}
	}
	if most > 0 && free != 0 {
		best = free
	}
	switch {
	case best == 0:
		return 0
	case c.reserved != 0 && c.reservedFor == queue && e.fits(c, queue, c.reserved, company):
		return c.reserved
	case e.fits(c, queue, best, company):
		return best
	case c.reserved == 0 && !e.spiders.byID[best].distrusted():
		e.reserve(c, queue, best)
	}
	return 0
}

// triesSooner reports whether spider a is likely to finish a suspect before spider b: one that has
// room now before one that has to wait, then the quicker one. A spider that has never answered is
// the slowest.
func (e *Engine) triesSooner(c *spiderPool, queue, a, b uint32, company int) bool {
	if fits := e.fits(c, queue, a, company); fits != e.fits(c, queue, b, company) {
		return fits
	}
	wait := func(sp *spider) time.Duration {
		if sp.recent.answers == 0 {
			return mostWait
		}
		return sp.wait(e.now)
	}
	spA, spB := e.spiders.byID[a], e.spiders.byID[b]
	if waitA, waitB := wait(spA), wait(spB); waitA != waitB {
		return waitA < waitB
	}
	return spA.inFlight < spB.inFlight
}

// fits reports whether a spider may have one more document of a queue, which is to be among so
// few.
func (e *Engine) fits(c *spiderPool, queue, id uint32, company int) bool {
	sp := e.spiders.byID[id]
	return sp.listens(e.now) && sp.inFlight < e.allowance(sp) && sp.inFlight-len(sp.longFetches) < company &&
		(c.reserved != id || c.reservedFor == queue)
}

// reserve gives a spider nothing else until the first suspect of a queue fits there: for one
// status timeout at a time, with breaks as long, so that a fetch that takes hours does not stop a
// crawl.
func (e *Engine) reserve(c *spiderPool, queue, id uint32) {
	c.reserved, c.reservedFor, c.since = id, queue, e.now
	e.spiders.reserved++
	e.updateSpider(id, e.spiders.byID[id])
}

// unreserve ends the reservation of a spider, if it has one.
func (ss *spiders) unreserve(pool, id uint32) {
	if c := &ss.pools.all[pool]; c.reserved == id {
		c.reserved = 0
		ss.reserved--
	}
}

// keepReserved ends a pool's reservation of a spider when no suspect waits for it.
func (e *Engine) keepReserved(c *spiderPool, due *waiter) {
	id := c.reserved
	if id == 0 {
		return
	}
	if !e.slots.Pool(c.reservedFor).Suspended() {
		c.reserved = 0
		e.spiders.reserved--
	} else {
		span := e.cfg.TimeoutSpiderStatus
		due.after(span - (e.now-c.since)%span)
	}
	e.updateSpider(id, e.spiders.byID[id])
}

// isReserved reports whether a spider gets only the suspects that it is reserved for now.
func (e *Engine) isReserved(id uint32, sp *spider) bool {
	c := &e.spiders.pools.all[sp.pool]
	return c.reserved == id && (e.now-c.since)/e.cfg.TimeoutSpiderStatus%2 == 0
}

// dispatchSuspect decides about a selected suspect: it goes out if it fits and none waits before
// it.
func (e *Engine) dispatchSuspect(t hostslots.Selection) {
	id := uint32(0)
	if !e.slots.Pool(t.Pool).Suspended() {
		id = e.tester(e.spiders.poolFor(spiderPoolOf(t.Pool)), t.Pool, e.spiders.suspects[t.Doc].company, false)
	}
	if id == 0 {
		e.slots.Suspend(e.now, t)
		return
	}
	e.dispatchTo(t, id)
}
