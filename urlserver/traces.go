package urlserver

import (
	"slices"

	"urlserver/internal/trace"
	"urlserver/urlserver/engine"
)

// endWithout exports the traces of documents that ended without an outcome, and returns the others.
func (d *Daemon) endWithout(ends []engine.TraceEnd) (others []engine.TraceEnd) {
	for i := range ends {
		if ends[i].Outcome == 0 {
			d.exportTraces(ends[i:i+1], false)
		}
	}
	return slices.DeleteFunc(ends, func(e engine.TraceEnd) bool { return e.Outcome == 0 })
}

// exportTraces exports traces; delivered says whether the doc index has just acknowledged their
// outcomes.
func (d *Daemon) exportTraces(ends []engine.TraceEnd, delivered bool) {
	for i := range ends {
		j := ends[i].Trace
		if delivered {
			j.Add(trace.Span{Phase: trace.Delivery, From: ends[i].At, To: d.clock()})
		}
		d.parts.Traces.Take(d.start, j)
	}
}

// maxPendingTraces bounds the traces that wait for the delivery of their outcomes; further ones are
// exported at once.
const maxPendingTraces = 4096

// pendingTraces holds ended traces until the doc index has acknowledged their outcomes, which are
// delivered in order.
type pendingTraces struct {
	put, taken uint64 // outcomes, since the start
	waiting    []pendingTrace
}

type pendingTrace struct {
	number uint64 // of its outcome
	end    engine.TraceEnd
}

// add adds the ends among a number of outcomes, and returns those for which there is no room.
func (t *pendingTraces) add(ends []engine.TraceEnd, outcomes int) (rest []engine.TraceEnd) {
	room := min(len(ends), maxPendingTraces-len(t.waiting))
	for i := range ends[:room] {
		t.waiting = append(t.waiting, pendingTrace{t.put + uint64(ends[i].Outcome), ends[i]})
	}
	t.put += uint64(outcomes)
	return ends[room:]
}

// take removes and returns the ends among the next outcomes, of the given number.
func (t *pendingTraces) take(outcomes int) (ends []engine.TraceEnd) {
	t.taken += uint64(outcomes)
	for len(ends) < len(t.waiting) && t.waiting[len(ends)].number <= t.taken {
		ends = append(ends, t.waiting[len(ends)].end)
	}
	if len(ends) > 0 {
		t.waiting = slices.Delete(t.waiting, 0, len(ends))
	}
	return ends
}

// cut removes and returns the ends behind the next outcomes, of the given number.
func (t *pendingTraces) cut(outcomes int) (ends []engine.TraceEnd) {
	t.put = t.taken + uint64(outcomes)
	kept := slices.IndexFunc(t.waiting, func(w pendingTrace) bool { return w.number > t.put })
	if kept < 0 {
		return nil
	}
	for _, w := range t.waiting[kept:] {
		ends = append(ends, w.end)
	}
	t.waiting = slices.Delete(t.waiting, kept, len(t.waiting))
	return ends
}
