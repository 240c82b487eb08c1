package queuesched_test

import (
	"slices"

	"urlserver/docindex/internal/queuesched"
)

func (r *rig) begin() {
	c := &call{
		crawl: r.crawl(), all: r.rnd.IntN(2) == 0, most: []int{0, 1, 1, 2, 3, 5}[r.rnd.IntN(6)],
		seen: map[*queue]bool{}, owed: map[*queue]bool{},
	}
	for i, d := range r.real {
		c.real[i] = d.BeginCall([]byte(c.crawl), c.all, uint32(c.most))
	}
	for _, q := range r.queues {
		c.owed[q] = r.open(c, q)
	}
	r.calls = append(r.calls, c)
}

// goOn lets one of the calls take its next queue, or end the one that it is at.
func (r *rig) goOn() {
	if len(r.calls) == 0 {
		return
	}
	i := r.rnd.IntN(len(r.calls))
	c := r.calls[i]
	for _, other := range r.calls {
		if other != c {
			clear(other.owed)
		}
	}
	if c.at != nil {
		r.serve(c)
		return
	}
	var id uint32
	if named := r.anyQueue(); named != nil && r.rnd.IntN(10) == 0 {
		want := r.open(&call{all: true, most: c.most}, named)
		if got := both(r, func(i int, d *queuesched.Scheduler) bool {
			return d.ServeQueue(&c.real[i], named.id, r.now)
		}); got != want {
			r.t.Fatalf("step %d: Serve(%+v) = %v; want %v", r.step, named, got, want)
		} else if !got {
			r.refused(c, named)
			return
		}
		id = named.id
	} else if id = both(r, func(i int, d *queuesched.Scheduler) uint32 {
		return d.NextForCall(&c.real[i], r.now)
	}); id == 0 {
		for q, owed := range c.owed {
			if owed && !c.seen[q] {
				r.t.Fatalf("step %d: Next has no queue for a call of at most %d; %+v could be served "+
					"all the time", r.step, c.most, q)
			}
		}
		r.calls = slices.Delete(r.calls, i, i+1)
		r.found(c)
		return
	} else if q := r.queues[id]; q == nil || !r.open(c, q) || c.seen[q] {
		r.t.Fatalf("step %d: Next for a call of at most %d is %+v, seen %v, in transit %d, which may "+
			"not be served", r.step, c.most, q, c.seen[q], r.inTransit(q))
	}
	q := r.queues[id]
	for _, other := range r.calls {
		delete(other.seen, q)
	}
	q.serving, q.again, c.at, c.seen[q] = c, r.pace(q) == 0, q, true
}

func (r *rig) anyQueue() *queue {
	ids := make([]uint32, 0, len(r.queues))
	for id := range r.queues {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return r.queues[ids[r.rnd.IntN(len(ids))]]
}

// serve takes what the call may take of its queue, and ends the serving.
func (r *rig) serve(c *call) {
	q := c.at
	c.at = nil
	if !both(r, func(i int, d *queuesched.Scheduler) bool { return d.IsServing(&c.real[i], q.id) }) {
		if q.serving == c {
			r.t.Fatalf("step %d: the call is no longer at %+v", r.step, q)
		}
		return // deleted meanwhile
	}
	left := both(r, func(i int, d *queuesched.Scheduler) uint32 { return d.LeftInCall(&c.real[i], q.id) })
	if want := c.most - r.inTransit(q); c.most > 0 && int(left) != want || left == 0 {
		r.t.Fatalf("step %d: %d URLs are left to a call of at most %d; want %d", r.step, left, c.most, want)
	}
	gave := false
	for range min(left, uint32(1+r.rnd.IntN(3))) {
		u := r.pick(q, queuesched.FrontierConsumer, nil)
		if u == nil {
			break
		}
		r.depart(u, queuesched.FrontierConsumer)
		gave = true
	}
	due := r.due(q)
	q.serving = nil
	if gave {
		q.served[queuesched.FrontierConsumer] = r.now
	} else if due <= r.now {
		q.skipUntil = r.now + queuesched.DefaultDelay
	}
	r.do(func(d *queuesched.Scheduler) { d.SetDue(q.id, due, r.now) })
	for i, d := range r.real {
		d.EndServing(&c.real[i], q.id, gave, r.now)
	}
}
