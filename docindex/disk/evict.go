package disk

import (
	"slices"

	"urlserver/docindex/internal/queuesched"
)

// evictor chooses the queues that leave memory. It looks at queues in memory alone.
type evictor struct {
	sched   *queuesched.Scheduler
	queues  *queues
	numbers *queueNumbers
	names   *knownNames
	budget  int64       // bytes that queues in memory may take
	hand    uint32      // number of the queue at which the search continues
	sample  []wakePlace // memory of placeToLeave
}

// queueCost is how many bytes a queue takes in memory besides those that the scheduler counts: its
// record, an entry in the index of numbers, and places in heaps.
const queueCost = 120 + 10 + 2*20

// used returns the bytes that queues in memory take.
func (e *evictor) used() int64 {
	return e.sched.BytesInUse() + int64(e.sched.InMemory())*queueCost + e.queues.branches.Bytes()
}

// isOverfull reports whether the queues in memory exceed the budget by more than a sixteenth. Then
// even a call that writes nothing else evicts some.
func (e *evictor) isOverfull() bool { return e.used() > e.budget+e.budget/16 }

// fitNames gives the names of known URLs the memory that queues and numbers leave free. Queues may
// not take the memory for numbers, because the store keeps the memory of evicted queues for other
// queues.
func (e *evictor) fitNames() { e.names.allow(e.shared() - e.used()) }

// shared returns the bytes that queues and names in memory may take.
func (e *evictor) shared() int64 { return e.budget + e.numbers.freeBytes() }

// mayLeave returns the place of a queue among those that wait. ok reports whether the queue may be
// evicted.
func (e *evictor) mayLeave(id uint32, now int64) (p wakePlace, ok bool) {
	p.no = e.queues.at(id).no
	p.at, ok = e.sched.NeededAt(id, now)
	return p, ok
}

const (
	evictSample = 256    // queues that placeToLeave samples
	evictShare  = 8      // of the queues that choose looks at, at least one in this many leaves
	evictLooks  = 20_000 // queues that one choice looks at
)

// choose calls leave with queues that are to leave memory, if the queues in memory take more than
// the budget. It looks first at changed, the queues that were just changed: most of many new queues
// need not stay, and they are in the processor's cache.
func (e *evictor) choose(changed []uint32, now int64, leave func(id uint32, at queuesched.Moment)) {
	used, live := e.used(), int64(e.sched.InMemory())
	e.fitNames()
	if used <= e.budget || live == 0 {
		return
	}
	want := int((used-e.budget+e.budget/16)/max(used/live, 1)) + 1
	least, some := e.placeToLeave(want, now)
	if !some {
		return
	}
	look := func(id uint32) {
		if !e.sched.Exists(id) {
			return
		}
		if p, ok := e.mayLeave(id, now); ok && !p.before(least) {
			leave(id, p.at)
			want--
		}
	}
	for _, id := range changed {
		if look(id); e.used() <= e.budget {
			return
		}
	}
	bound := e.sched.Bound()
	for looks := min(int(bound), evictShare*want+evictSample, evictLooks); looks > 0 && want > 0; looks-- {
		if e.hand++; e.hand >= bound {
			e.hand = 1
		}
		look(e.hand)
	}
}

// placeToLeave returns the place from which on queues leave, estimated from a sample. some reports
// whether there is such a queue.
func (e *evictor) placeToLeave(want int, now int64) (least wakePlace, some bool) {
	e.sample = e.sample[:0]
	bound := e.sched.Bound()
	step := max(1, bound/evictSample)
	for id := 1 + e.hand%step; id < bound; id += step {
		if !e.sched.Exists(id) {
			continue
		}
		if p, ok := e.mayLeave(id, now); ok {
			e.sample = append(e.sample, p)
		}
	}
	n := len(e.sample)
	if n == 0 {
		return least, false
	}
	slices.SortFunc(e.sample, func(a, b wakePlace) int { return b.compare(a) })
	share := max(want*n/max(e.sched.InMemory(), 1)+1, n/evictShare)
	return e.sample[min(share, n)-1], true
}

// writeRows writes the rows of a queue that may be evicted, and may be served from the moment at
// on, unless the rows are up to date. It returns the moment of the queue's wake row.
func (c *coldQueues) writeRows(id uint32, at queuesched.Moment, now int64) queuesched.Moment {
	q := c.table.at(id)
	byRule := at.MS() > max(q.due, now) && at != queuesched.NoMoment
	if most := max(q.due, now+maxWait); byRule && at.MS() > most {
		at = queuesched.MomentOf(most)
	}
	if q.touched || q.dirtySince != 0 || q.wake != at {
		n := c.sched.Persist(id).Scheduled
		if !byRule && at.MS() <= now && (q.fresh && q.wake == at || !q.stored && q.wake == queuesched.NoMoment) {
			q.fresh, q.wake, q.wakes = true, at, n
		} else {
			c.leaveFresh(id)
			c.setWake(id, at, byRule, n, now)
		}
		c.table.putRow(id, true, now)
		q.touched = false
	}
	return at
}

// evict removes from memory a queue that may be served from the moment at on.
func (c *coldQueues) evict(id uint32, at queuesched.Moment, now int64) {
	q, crawl := c.table.at(id), c.sched.CrawlNo(id)
	if at = c.writeRows(id, at, now); at != queuesched.NoMoment {
		p, place := wakePlace{at, q.no}, c.placeOf(crawl)
		switch {
		case q.fresh:
			place.fresh = min(place.fresh, q.no)
		case p.before(place.wake):
			place.wake = p
		}
		if at.OfOverran() {
			place.some, place.rests = true, 0
		}
		if at < c.sched.WakeOf(crawl) {
			c.sched.WakeCrawl(crawl, at)
		}
	}
	c.table.remove(id)
	c.sched.Evict(id, now)
}
