package engine

import (
	"math"
	"time"

	"urlserver/hostslots"
	"urlserver/internal/container/timeheap"
	"urlserver/internal/robots"
	"urlserver/urlserver/explain"
)

// A verdict that costs next to nothing is made when a document's turn comes. Others are asked for
// (Out.Question), one question at a time: documents of the origin wait meanwhile, and those of others go
// on. An origin whose verdicts cost much waits before its next question in proportion to that, so that
// it has a small part of the processor at most, and those with cheaper questions go first.
const (
	cheapWork   = 32 << 10 // octets that are looked at for a verdict that costs next to nothing: some 30 µs
	chargeTimes = 100      // an origin waits for so many times as long as its question took
	octetTime   = time.Nanosecond
)

// Question asks for verdicts on documents by rules. Whoever has the time calls Rules.AllowedAll with Targets;
// Judged takes the answer.
type Question struct {
	Rules   *robots.Rules
	Targets [][]byte

	origin uint32
	urls   [][]byte
	void   bool // the rules are not in force any more
}

// judging is the questions.
type judging struct {
	queue timeheap.Heap            // origins that wait for a verdict, by when their turn is
	paid  map[uint32]time.Duration // by origin: no question before
	out   *Question
	free  time.Duration // no question before
}

// refused answers whether robots.txt forbids the document of a turn. known is false where that is not
// known yet; the origin's documents are held until it is.
func (e *Engine) refused(t hostslots.Selection) (refused, known bool) {
	entry := e.entry(t.Origin)
	url := e.slots.Doc(t.Doc).URL
	allowed, known := e.recollect(t.Origin, url)
	switch {
	case known:
	case entry.Rules() == nil: // they were dropped
		e.slots.SetRobotsPending(e.now, t.Origin, true)
		e.startTrip(t.Origin)
		return false, false
	default:
		if entry.size > 0 {
			e.pull(t.Origin)
			e.push(t.Origin)
		}
		work := cheapWork
		if faulty(faultVerdict) {
			work = math.MaxInt
		}
		if allowed, known = entry.Rules().AllowedWithin(target(url), work); !known {
			e.enqueue(t, len(url))
			return false, false
		}
	}
	entry.unused = false
	return !allowed, true
}

// enqueue has the origin of a turn wait for a verdict. Of several that may ask now the one with the least
// work is first.
func (e *Engine) enqueue(t hostslots.Selection, octets int) {
	e.slots.SetRobotsPending(e.now, t.Origin, true)
	e.slots.Host(t.Host).Pin()
	work := octetTime * time.Duration(e.entry(t.Origin).Rules().Len()*octets)
	e.judging.queue.Set(t.Origin, max(e.now, e.judging.paid[t.Origin])+min(work, 100*time.Millisecond))
	delete(e.judging.paid, t.Origin)
}

// question asks for the verdicts that are first in the queue.
func (e *Engine) question(due *waiter) {
	for e.judging.out == nil {
		id, at, ok := e.judging.queue.Min()
		if !ok {
			return
		}
		if at = max(at, e.judging.free); at > e.now && e.cfg.Robots.Enabled {
			due.after(at - e.now)
			return
		}
		e.judging.queue.Remove(id)
		entry := e.entry(id)
		urls := e.waiting(id)
		if len(urls) == 0 || entry.Rules() == nil || !e.cfg.Robots.Enabled {
			e.letGo(id)
			continue
		}
		e.judging.out = &Question{Rules: entry.Rules(), Targets: targets(urls), origin: id, urls: urls}
		e.Out.Question = e.judging.out
	}
}

// Judged takes the answer to Out.Question: the verdicts on the first of its targets, and what they cost in
// octets that were looked at.
func (e *Engine) Judged(allowed []bool, work int) {
	q := e.judging.out
	e.judging.out = nil
	took := octetTime * time.Duration(work)
	e.judging.free = e.now + took // as much for others
	if !faulty(faultCharge) {
		e.judging.paid[q.origin] = e.now + chargeTimes*took
	}
	if !q.void {
		e.rememberAll(q.origin, q.urls, allowed)
		e.entry(q.origin).unused = true
	}
	e.letGo(q.origin)
}

// letGo lets documents go on that waited for a verdict.
func (e *Engine) letGo(id uint32) {
	e.slots.SetRobotsPending(e.now, id, false)
	e.slots.Host(e.slots.HostOf(id)).Unpin()
}

// judged says in words that an origin of a host waits for a verdict; "": none does.
func (e *Engine) judged(host uint32) (why explain.Reason) {
	e.slots.Host(host).Origins(func(o uint32) {
		if e.judging.queue.Has(o) || e.judging.out != nil && e.judging.out.origin == o {
			n := 0
			if rules := e.entry(o).Rules(); rules != nil {
				n = rules.Len()
			}
			why = because(explain.VerdictPending, n)
		}
	})

	return why
}
