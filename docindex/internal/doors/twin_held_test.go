package doors_test

import (
	"slices"

	"urlserver/docindex/internal/doors"
)

// wait is a call for which there was no queue at all, and that waits for one.
type wait struct {
	call
	since [2]int // news before
}

// held tells whether a queue is kept from a call by others, for a moment.
func (w *twin) held(c *call, q *queue) bool {
	full := w.ready(q, doors.Calls) && c.most > 0 && w.inTransit(q) >= c.most
	return (c.all || c.crawl == q.crawl) && (full || q.serving != nil && q.again)
}

// found checks what a call is told for which there is no queue any more.
func (r *rig) found(c *call) {
	held := false
	for _, q := range r.queues {
		one := r.held(&call{all: true, most: c.most}, q)
		if got := both(r, func(i int, d *doors.Doors) bool { return d.HeldOne(&c.real[i], q.id) }); got != one {
			r.t.Fatalf("step %d: HeldOne(%+v) for a call of at most %d is %v", r.step, q, c.most, got)
		}
		held = held || r.held(c, q)
	}
	got := both(r, func(i int, d *doors.Doors) bool { return d.HeldAny(&c.real[i]) })
	if got && !held || held && !got && len(c.seen) == 0 {
		r.t.Fatalf("step %d: HeldAny for a call of at most %d is %v; want %v", r.step, c.most, got, held)
	}
	if held && len(c.seen) == 0 {
		r.waits = append(r.waits, &wait{call: *c, since: r.rung})
	}
}

// checkWaits sees that all are told for which there is a queue.
func (r *rig) checkWaits() {
	r.waits = slices.DeleteFunc(r.waits, func(w *wait) bool {
		told := both(r, func(i int, _ *doors.Doors) bool { return r.rung[i] > w.since[i] })
		for _, q := range r.queues {
			if !told && r.open(&w.call, q) {
				r.t.Fatalf("step %d: a call of at most %d waits; %+v may be served", r.step, w.most, q)
			}
		}
		return told
	})
}
