package queuesched_test

import (
	"slices"

	"urlserver/docindex/internal/queuesched"
)

// wait is a call for which there was no queue at all, and that looks again whenever there is news.
type wait struct {
	call
	key   *queue // the one that it wants alone; nil: any
	since [2]int // news before it looked last
}

// held tells whether a queue is kept from a call by others, for a moment.
func (w *twin) held(c *call, q *queue) bool {
	full := w.ready(q, queuesched.FrontierConsumer) && c.most > 0 && w.inTransit(q) >= c.most
	return (c.all || c.crawl == q.crawl) && (full || q.serving != nil && q.again)
}

// found checks what a call is told for which there is no queue any more.
func (r *rig) found(c *call) {
	held := false
	for _, q := range r.queues {
		one := r.held(&call{all: true, most: c.most}, q)
		if got := both(r, func(i int, d *queuesched.Scheduler) bool {
			return d.MayRetryQueue(&c.real[i], q.id)
		}); got != one {
			r.t.Fatalf("step %d: HeldOne(%+v) for a call of at most %d is %v", r.step, q, c.most, got)
		}
		held = held || r.held(c, q)
	}
	got := both(r, func(i int, d *queuesched.Scheduler) bool { return d.MayRetryAny(&c.real[i]) })
	if got && !held || held && !got && len(c.seen) == 0 {
		r.t.Fatalf("step %d: HeldAny for a call of at most %d is %v; want %v", r.step, c.most, got, held)
	}
	if held && len(c.seen) == 0 {
		r.wait(&wait{call: *c})
	}
}

const maxWaits = 5

func (r *rig) wait(w *wait) {
	if len(r.waits) < maxWaits {
		w.since = r.rung
		r.waits = append(r.waits, w)
	}
}

// refused has a call that wants one queue alone wait for it, if others only hold it for a moment.
func (r *rig) refused(c *call, named *queue) {
	one := call{all: true, most: c.most}
	if r.held(&one, named) {
		r.wait(&wait{call: one, key: named})
	}
}

// checkWaits sees that all are told for which there is a queue. Others that are told look again in
// vain.
func (r *rig) checkWaits() {
	r.waits = slices.DeleteFunc(r.waits, func(w *wait) bool {
		if w.key != nil && r.queues[w.key.id] != w.key {
			return true // deleted
		}
		told := both(r, func(i int, _ *queuesched.Scheduler) bool { return r.rung[i] > w.since[i] })
		open, held := false, false
		for _, q := range r.queues {
			if w.key == nil || w.key == q {
				open = open || r.open(&w.call, q)
				held = held || r.held(&w.call, q)
			}
		}
		switch {
		case open && !told:
			r.t.Fatalf("step %d: a call of at most %d waits, alone for %+v; it may be served", r.step, w.most, w.key)
		case told && !open && held:
			r.lookAgain(w)
		}
		return told && (open || !held)
	})
}

func (r *rig) lookAgain(w *wait) {
	for _, c := range r.calls {
		clear(c.owed)
	}
	w.since = r.rung
	if id := both(r, func(_ int, d *queuesched.Scheduler) uint32 { return look(d, w, r.now) }); id != 0 {
		r.t.Fatalf("step %d: a call of at most %d is served %d, which may not be", r.step, w.most, id)
	}
}

// look is the queue that a call finds which begins now; 0: none.
func look(d *queuesched.Scheduler, w *wait, now int64) uint32 {
	c := d.BeginCall([]byte(w.crawl), w.all, uint32(w.most))
	switch {
	case w.key == nil:
		return d.NextForCall(&c, now)
	case d.ServeQueue(&c, w.key.id, now):
		return w.key.id
	}
	return 0
}
