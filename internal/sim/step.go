package sim

import (
	"strconv"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

const (
	probes     = 0.02    // share of waits within which the daemon is made to step
	spinning   = 10_000  // consecutive steps without cause or effect that show a busy loop
	countEvery = 1 << 10 // steps between two comparisons of counts
	fewHeld    = 10      // up to so many held documents, counts are compared after each step
)

// work counts what the engine emitted in a step.
type work struct {
	Outcomes, Returns, Fetches, Writes, Lookups, Asks, Notes int
}

// step steps the engine until it has nothing more to do now.
func (r *run) step() {
	r.did = work{}
	for {
		before := r.did
		r.oracle.expire()
		wait := r.engine.Step(nil)
		r.trace.steps++
		r.flush()
		r.spins(r.did != before)
		r.wake = -1
		if wait > 0 {
			r.wake = r.now + wait
		}
		if wait != 0 && !r.again || r.oracle.complaint != nil {
			break
		}
		r.again = false
	}
	r.oracle.stepped()
	if r.trace.steps%countEvery == 0 || r.oracle.held < fewHeld {
		s := r.engine.Stats()
		c := s.Slots
		r.oracle.counts(c.Held, c.InFlight, !r.stalls)
		r.oracle.remembers(s.RobotsBytes)
	}
}

// spins counts consecutive steps without cause or effect.
func (r *run) spins(worked bool) {
	r.idle++
	if worked || r.event {
		r.idle = 0
	}
	if r.event = false; r.idle > spinning {
		r.oracle.wrong(RuleIdle, "%d steps in a row did nothing", r.idle)
	}
}

// flush carries out the engine's output, as the daemon's run loop does.
func (r *run) flush() {
	out := &r.engine.Out
	r.learn(out)
	// The oracle must see outcomes of documents that were not sent before it sees the lines of
	// documents behind them, and timeouts after it sees their connections end.
	r.outcomes(out, func(k docindex.Kind) bool { return k != docindex.Timeout })
	for _, id := range out.Drop {
		if c := r.conns[id]; c != nil {
			c.flush()
			c.end()
		}
	}
	r.outcomes(out, func(k docindex.Kind) bool { return k == docindex.Timeout })
	for i := range out.Returns.Len() {
		r.oracle.returned(string(out.Returns.At(i).DocID))
		r.index.returned(out.Returns.At(i))
	}
	r.keepNotes(out.Learned) // first: a request may be for what was learned before it
	for _, q := range out.NoteRequests {
		r.findNote(q)
	}
	for _, f := range out.Fetches {
		r.fetch(f)
	}
	if q := out.Question; q != nil {
		out.Question = nil
		r.answerQuestion(q)
	}
	for _, id := range out.Dirty {
		if c := r.conns[id]; c != nil {
			c.flush()
		}
	}
	for _, name := range out.Lookups {
		r.lookUp(name)
	}
	if out.Ask != nil {
		r.did.Asks++
		r.index.asked(out.Ask)
	}
	r.outbox.setBackpressure()
	r.did.Returns += out.Returns.Len()
	r.did.Fetches += len(out.Fetches)
	r.did.Notes += len(out.NoteRequests)
	r.did.Lookups += len(out.Lookups)
	out.Outcomes.Reset()
	out.Returns.Reset()
	out.Learned, out.NoteRequests = out.Learned[:0], out.NoteRequests[:0]
	out.Fetches, out.Dirty, out.Drop, out.Lookups, out.Ask = out.Fetches[:0], out.Dirty[:0], out.Drop[:0],
		out.Lookups[:0], nil
}

func (r *run) outcomes(out *engine.Out, of func(docindex.Kind) bool) {
	for i := range out.Outcomes.Len() {
		if o := out.Outcomes.At(i); of(o.Kind) {
			r.outcome(o)
		}
	}
}

func (r *run) outcome(out docindex.Outcome) {
	r.did.Outcomes++
	r.trace.outcome(r.now, out)
	r.oracle.outcome(out)
	if n, err := strconv.ParseUint(string(out.DocID), 10, 32); err == nil && r.ended != nil {
		r.ended(uint32(n))
	}
	r.index.ended(out)
	r.outbox.put(string(out.DocID))
}

// answerQuestion answers a question about robots.txt after a while.
func (r *run) answerQuestion(q *engine.Question) {
	r.oracle.asksVerdicts(q.Targets)
	allowed, work := q.Rules.AllowedAll(q.Targets)
	wait := time.Duration(work)*timePerOctet + r.between(time.Millisecond, 20*time.Millisecond)
	r.after(wait, r.ofLife(func() {
		r.oracle.getsVerdicts(q.Targets[:len(allowed)], work)
		r.engine.Judged(allowed, work)
	}))
}

func (r *run) fetch(f engine.Fetch) {
	r.trace.text(r.now, f.URL)
	r.oracle.fetch(f.ID, f.URL, f.Addr)
	r.serveRobots(f)
}
