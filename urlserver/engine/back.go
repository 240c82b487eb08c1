package engine

import (
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/container/timeheap"
	"urlserver/protocol"
)

// A spider may give a document back (BACK) that it has not fetched. The sending does not count as an
// attempt, but as a request: a document that always comes back is sent no more often than its host
// may be requested. The engine queues it behind the others of its host.
//
// If BACK names seconds, the engine holds the document for that time. If not, the document goes to a
// spider of the pool that has not given it back, while there is one; if none of these has room, the
// engine holds the document for elsewherePause. A held document counts against leftover.max as any
// other that waits in the slots.

const (
	elsewherePause = time.Second // a document that other spiders have no room for is held so long
	maxGivers      = 16          // spiders remembered for a document
)

// backs has the documents that spiders gave back.
type backs struct {
	held   timeheap.Heap        // by the moment at which they are queued again
	givers map[uint32][]*spider // who gave a document back for others
}

func newBacks() backs { return backs{givers: map[uint32][]*spider{}} }

// forget ends the hold of a document and forgets who gave it back.
func (b *backs) forget(doc uint32) {
	b.held.Remove(doc)
	delete(b.givers, doc)
}

// back takes a document back that a spider gave back, and ends, returns, holds or queues it.
func (e *Engine) back(sp *spider, trans hostslots.TransID, sent time.Duration, s *protocol.Status) {
	e.markWritten(sp, trans, sent)
	doc := e.slots.Back(e.now, trans)
	sp.recent.gaveBack(e.now, e.now-sent)
	delete(sp.longFetches, doc)
	sp.inFlight--
	e.spiders.parted(doc)
	e.stats.Back++
	e.traceBack(doc, "back")
	kind, cancelled := e.outcomes.cancelOnReturn[doc]
	_, wanted := e.outcomes.returnOnTurn[doc]
	switch {
	case cancelled:
		e.end(doc, kind, protocol.NoStatus)
	case wanted:
		e.returnDoc(doc)
	case faulty(FaultBack):
		e.end(doc, docindex.Timeout, protocol.NoStatus)
	case s.Seconds > 0 && !faulty(FaultEarly):
		e.hold(doc, time.Duration(s.Seconds)*time.Second)
	default:
		givers := append(e.spiders.backs.givers[doc], sp)
		e.spiders.backs.givers[doc] = givers[max(0, len(givers)-maxGivers):]
		e.queueLast(doc)
	}
}

// hold keeps a document that is in no queue from being sent for the given time.
func (e *Engine) hold(doc uint32, span time.Duration) {
	e.spiders.backs.held.Set(doc, e.now+span)
	e.slots.Pool(heldQueue(spiderPoolOf(e.slots.Doc(doc).Pool))).Hold(e.now, doc)
}

// queueLast queues a document that is in no queue, behind the others of its host.
func (e *Engine) queueLast(doc uint32) {
	_, suspect := e.spiders.suspects[doc]
	e.slots.Pool(poolQueue(spiderPoolOf(e.slots.Doc(doc).Pool), suspect)).QueueLast(e.now, doc)
}

// endHolds queues documents again that have been held for long enough.
func (e *Engine) endHolds(budget *int) {
	for ; *budget > 0; *budget-- {
		doc, until, ok := e.spiders.backs.held.Min()
		if !ok || until > e.now {
			return
		}
		e.spiders.backs.held.Remove(doc)
		if e.slots.Dequeue(doc) {
			e.queueLast(doc)
		}
	}
}

// sendElsewhere sends a selected document that spiders have given back to another spider of its
// pool, or holds it until one has room. It returns false if no other spider takes documents.
func (e *Engine) sendElsewhere(t hostslots.Selection) bool {
	givers := e.spiders.backs.givers[t.Doc]
	if len(givers) == 0 {
		return false
	}
	c := e.spiders.poolFor(spiderPoolOf(t.Pool))
	id, others := e.quickestBut(c, givers)
	if others == 0 { // all have given it back: any but the last one may get it again
		givers = givers[len(givers)-1:]
		e.spiders.backs.givers[t.Doc] = givers
		if id, others = e.quickestBut(c, givers); others == 0 {
			return false
		}
	}
	if id != 0 {
		e.dispatchTo(t, id)
		return true
	}
	e.slots.DequeueSelected(e.now, t)
	e.hold(t.Doc, elsewherePause)
	return true
}

// quickestBut returns the spider of a pool that costs least of those with room that are not among
// givers, 0 if there is none, and the number of all others that may have documents at times. It
// costs O(spiders).
func (e *Engine) quickestBut(c *spiderPool, givers []*spider) (best uint32, others int) {
	for id, sp := range e.spiders.byID {
		if sp == nil || sp.gone || sp.notSpider || &e.spiders.pools.all[sp.pool] != c || e.mostAt(sp) == 0 ||
			slices.Contains(givers, sp) {
			continue
		}
		others++
		if c.ready.Has(uint32(id)) && !sp.stuck(e.now) &&
			(best == 0 || sp.cost(e.now) < e.spiders.byID[best].cost(e.now)) {
			best = uint32(id)
		}
	}
	return best, others
}

// gaveBack notes that a spider gave a document back. It has answered, but that says nothing about
// how quick it is.
func (r *recent) gaveBack(now, had time.Duration) { r.heard, r.owes = now, r.newest > now-had }
