package urlserver

import (
	"slices"

	"urlserver/internal/trace"
	"urlserver/urlserver/engine"
)

// endWithout tells of sampled documents that ended without an outcome, and returns the others.
func (d *Daemon) endWithout(ends []engine.JourneyEnd) (others []engine.JourneyEnd) {
	for i := range ends {
		if ends[i].Outcome == 0 {
			d.tellEnds(ends[i:i+1], false)
		}
	}
	return slices.DeleteFunc(ends, func(e engine.JourneyEnd) bool { return e.Outcome == 0 })
}

// tellEnds tells of sampled documents; delivered: the doc index has taken their outcomes just now.
func (d *Daemon) tellEnds(ends []engine.JourneyEnd, delivered bool) {
	for i := range ends {
		j := ends[i].Trace
		if delivered {
			j.Add(trace.Span{Phase: trace.Delivery, From: ends[i].At, To: d.clock()})
		}
		d.parts.Traces.Take(d.start, j)
	}
}

// maxTrails bounds the sampled documents whose outcomes wait to be delivered; those beyond are told of at once.
const maxTrails = 4096

// trails are the ends of sampled documents' journeys, until the doc index has their outcomes, which it gets in their order.
type trails struct {
	put, taken uint64 // outcomes, since the start
	waiting    []trail
}

type trail struct {
	number uint64 // of its outcome
	end    engine.JourneyEnd
}

// add takes the ends among so many outcomes, and returns those that it has no room for.
func (t *trails) add(ends []engine.JourneyEnd, outcomes int) (rest []engine.JourneyEnd) {
	room := min(len(ends), maxTrails-len(t.waiting))
	for i := range ends[:room] {
		t.waiting = append(t.waiting, trail{t.put + uint64(ends[i].Outcome), ends[i]})
	}
	t.put += uint64(outcomes)
	return ends[room:]
}

// take returns the ends among the next so many outcomes.
func (t *trails) take(outcomes int) (ends []engine.JourneyEnd) {
	t.taken += uint64(outcomes)
	for len(ends) < len(t.waiting) && t.waiting[len(ends)].number <= t.taken {
		ends = append(ends, t.waiting[len(ends)].end)
	}
	if len(ends) > 0 {
		t.waiting = slices.Delete(t.waiting, 0, len(ends))
	}
	return ends
}

// cut returns the ends that wait beyond the next so many outcomes, as if those had never been put.
func (t *trails) cut(outcomes int) (ends []engine.JourneyEnd) {
	t.put = t.taken + uint64(outcomes)
	kept := slices.IndexFunc(t.waiting, func(w trail) bool { return w.number > t.put })
	if kept < 0 {
		return nil
	}
	for _, w := range t.waiting[kept:] {
		ends = append(ends, w.end)
	}
	t.waiting = slices.Delete(t.waiting, kept, len(t.waiting))
	return ends
}
