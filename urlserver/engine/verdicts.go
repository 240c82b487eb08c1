package engine

import (
	"math"
	"time"

	"urlserver/hostslots"
	"urlserver/internal/container/timeheap"
	"urlserver/internal/robots"
	"urlserver/urlserver/explain"
)

// A cheap verdict is made when a document is selected. Costly ones are asked for (Out.Question),
// one question at a time: documents of the origin wait meanwhile, and those of others go on. An
// origin with costly verdicts waits before its next question in proportion to their cost, so it
// takes a small part of the processor at most, and origins with cheaper questions go first.
const (
	cheapWork   = 32 << 10 // octets that are looked at for a verdict that costs next to nothing: some 30 µs
	chargeTimes = 100      // an origin waits for so many times as long as its question took
	octetTime   = time.Nanosecond
)

// Question asks for verdicts on documents. Its taker calls Rules.AllowedAll with Targets and
// answers by Judged.
type Question struct {
	Rules   *robots.Rules
	Targets [][]byte

	origin uint32
	urls   [][]byte
	void   bool // the rules are not in force any more
}

// verdicts has the origins that wait for a verdict.
type verdicts struct {
	queue     timeheap.Heap            // origins that wait for a verdict, by when their turn is
	notBefore map[uint32]time.Duration // by origin: no question before
	out       *Question
	restUntil time.Duration // no question before
}

// isForbidden returns whether robots.txt forbids the selected document. known is false if that
// takes time; the origin's documents wait until it is known.
func (e *Engine) isForbidden(t hostslots.Selection) (refused, known bool) {
	entry := e.robots.entry(t.Origin)
	d := e.slots.Doc(t.Doc)
	url := e.docURL(&d)
	allowed, known := e.robots.takeVerdict(t.Origin, url)
	switch {
	case known:
	case entry.Rules() == nil: // they were dropped
		e.slots.Origin(t.Origin).SetRobotsPending(e.now, true)
		e.obtainRobots(t.Origin)
		return false, false
	default:
		if entry.size > 0 {
			e.robots.unlink(t.Origin)
			e.robots.linkNewest(t.Origin)
		}
		work := cheapWork
		if faulty(FaultVerdict) {
			work = math.MaxInt
		}
		if allowed, known = entry.Rules().AllowedWithin(target(url), work); !known {
			e.queueVerdict(t, len(url))
			return false, false
		}
	}
	entry.unused = false
	return !allowed, true
}

// queueVerdict makes the selected document's origin wait for a verdict. Of several origins that
// may ask now, the one with the least work is first.
func (e *Engine) queueVerdict(t hostslots.Selection, octets int) {
	e.slots.Origin(t.Origin).SetRobotsPending(e.now, true)
	e.slots.Host(t.Host).Pin()
	work := octetTime * time.Duration(e.robots.entry(t.Origin).Rules().Len()*octets)
	e.robots.verdicts.queue.Set(t.Origin, max(e.now, e.robots.verdicts.notBefore[t.Origin])+min(work,
		100*time.Millisecond))
	delete(e.robots.verdicts.notBefore, t.Origin)
}

// askVerdicts asks for the verdicts that are first in the queue.
func (e *Engine) askVerdicts(due *waiter) {
	for e.robots.verdicts.out == nil {
		id, at, ok := e.robots.verdicts.queue.Min()
		if !ok {
			return
		}
		if at = max(at, e.robots.verdicts.restUntil); at > e.now && e.cfg.Robots.Enabled {
			due.after(at - e.now)
			return
		}
		e.robots.verdicts.queue.Remove(id)
		entry := e.robots.entry(id)
		urls := e.waiting(id)
		if len(urls) == 0 || entry.Rules() == nil || !e.cfg.Robots.Enabled {
			e.endVerdictWait(id)
			continue
		}
		e.robots.verdicts.out = &Question{Rules: entry.Rules(), Targets: targets(urls), origin: id, urls: urls}
		e.Out.Question = e.robots.verdicts.out
	}
}

// Judged takes the answer to Out.Question: the verdicts on the first of its targets, and their
// cost in octets of work.
func (e *Engine) Judged(allowed []bool, work int) {
	q := e.robots.verdicts.out
	e.robots.verdicts.out = nil
	took := octetTime * time.Duration(work)
	e.robots.verdicts.restUntil = e.now + took // so verdicts take half of a processor at most
	if !faulty(FaultCharge) {
		e.robots.verdicts.notBefore[q.origin] = e.now + chargeTimes*took
	}
	if !q.void {
		e.robots.rememberAll(q.origin, q.urls, allowed)
		e.robots.entry(q.origin).unused = true
	}
	e.endVerdictWait(q.origin)
}

// endVerdictWait lets documents go on that waited for a verdict.
func (e *Engine) endVerdictWait(id uint32) {
	e.slots.Origin(id).SetRobotsPending(e.now, false)
	e.slots.Host(e.slots.HostOf(id)).Unpin()
}

// verdictWait returns that an origin of a host waits for a verdict; the zero Reason: none does.
func (e *Engine) verdictWait(host uint32) (why explain.Reason) {
	e.slots.Host(host).Origins(func(o uint32) {
		if e.robots.verdicts.queue.Has(o) || e.robots.verdicts.out != nil && e.robots.verdicts.out.origin == o {
			n := 0
			if rules := e.robots.entry(o).Rules(); rules != nil {
				n = rules.Len()
			}
			why = because(explain.VerdictPending, n)
		}
	})

	return why
}
