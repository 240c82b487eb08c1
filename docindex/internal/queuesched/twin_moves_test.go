package queuesched_test

import (
	"fmt"
	"slices"

	"urlserver/docindex/internal/queuesched"
)

// pick is a URL of a queue that is due and may go out at a consumer, and checks that the real ones
// say the same of its host.
func (r *rig) pick(q *queue, consumer queuesched.Consumer, rejected []string) *url {
	for _, u := range r.urls {
		if u.queue != q || u.state != queuesched.Scheduled || u.due > r.now {
			continue
		}
		free := r.free(u.host, consumer) && (consumer == queuesched.FrontierConsumer ||
			!slices.Contains(rejected, u.host))
		if q.mixed {
			if got := both(r,
				func(_ int, d *queuesched.Scheduler) bool {
					return d.HostAvailable([]byte(u.host), consumer, r.now)
				}); got != free {
				r.t.Fatalf("step %d: HostFree(%s, %d) = %v; want %v", r.step, u.host, consumer, got, free)
			}
		}
		if free || !q.mixed {
			return u
		}
	}
	return nil
}

func (r *rig) depart(u *url, consumer queuesched.Consumer) {
	u.state, u.consumer = queuesched.InTransit, consumer
	if consumer == queuesched.FrontierConsumer {
		gap := r.gaps[u.host]
		if rule := r.rules[u.host]; !rule.Barred {
			gap = max(gap, rule.Gap)
		}
		if last := r.called[u.host]; gap > 0 && last > 0 {
			r.called[u.host] = max(r.now, last+gap) // each URL counts
		} else {
			r.called[u.host] = r.now
		}
	}
	r.asked(u.host)
	r.do(func(d *queuesched.Scheduler) {
		d.Move(u.queue.id, queuesched.Scheduled, queuesched.InTransit)
		d.CountOut(u.queue.id, []byte(u.host), consumer, 1, r.now)
	})
}

func (r *rig) asked(host string) {
	if o := r.orders[host]; o != nil {
		o.asked = r.now
	}
}

// slots is a round of the host slots, of this daemon or another.
func (r *rig) slots() {
	consumer := []queuesched.Consumer{queuesched.SlotConsumer, queuesched.RemoteConsumer}[r.rnd.IntN(2)]
	var rejected []string
	for range r.rnd.IntN(3) {
		rejected = append(rejected, r.host())
	}
	r.do(func(d *queuesched.Scheduler) { d.BeginRound(rejected) })
	passed := map[*queue]bool{}
	may := func(q *queue) bool {
		return r.ready(q, consumer) && (q.mixed || !slices.Contains(rejected, q.key))
	}
	for most := 1 + r.rnd.IntN(6); most > 0; most-- {
		id := both(r, func(_ int, d *queuesched.Scheduler) uint32 { return d.NextForSlots(consumer) })
		if id == 0 {
			for _, q := range r.queues {
				if may(q) && !passed[q] {
					r.t.Fatalf("step %d: no queue for the slots; %+v may be served", r.step, q)
				}
			}
			break
		}
		q := r.queues[id]
		if q == nil || !may(q) {
			r.t.Fatalf("step %d: the queue for the slots is %+v, which may not be served", r.step, q)
		}
		u := r.pick(q, consumer, rejected)
		if u != nil && passed[q] {
			r.t.Fatalf("step %d: %+v was passed over, and has something to give", r.step, q)
		}
		if u == nil { // it may come again where what others gave changed something, but in vain
			passed[q] = true
			r.do(func(d *queuesched.Scheduler) { d.Skip(id) })
			continue
		}
		r.depart(u, consumer)
		r.do(func(d *queuesched.Scheduler) { d.EndTurn(id, r.due(q), r.now) })
	}
	r.do(func(d *queuesched.Scheduler) { d.EndRound(r.now) })
}

// news brings news of a URL: an outcome, a lease that ran out, a rescheduling, or that it is
// forgotten.
func (r *rig) news() {
	if len(r.urls) == 0 {
		return
	}
	i := r.rnd.IntN(len(r.urls))
	u := r.urls[i]
	switch u.state {
	case queuesched.InTransit:
		r.land(u, []queuesched.State{queuesched.Scheduled, queuesched.Completed}[r.rnd.IntN(2)])
	case queuesched.Scheduled:
		r.move(u, queuesched.Completed)
	default:
		if r.rnd.IntN(2) == 0 {
			u.due = r.now + int64(r.rnd.IntN(2000))
			r.move(u, queuesched.Scheduled)
			return
		}
		r.urls = slices.Delete(r.urls, i, i+1)
		r.do(func(d *queuesched.Scheduler) {
			d.Uncount(u.queue.id, queuesched.Completed)
			d.Refresh(u.queue.id, r.now)
		})
	}
}

func (r *rig) move(u *url, to queuesched.State) {
	from := u.state
	u.state = to
	r.do(func(d *queuesched.Scheduler) {
		d.Move(u.queue.id, from, to)
		d.SetDue(u.queue.id, r.due(u.queue), r.now)
		d.Refresh(u.queue.id, r.now)
	})
}

func (r *rig) land(u *url, to queuesched.State) {
	u.state = to
	if u.consumer != queuesched.FrontierConsumer {
		u.queue.served[queuesched.SlotConsumer] = r.now
		r.asked(u.host)
	}
	if u.consumer == queuesched.RemoteConsumer && !r.hostOut(u.host, queuesched.RemoteConsumer) {
		r.called[u.host] = max(r.called[u.host], r.now)
	}
	for _, c := range r.calls {
		delete(c.owed, u.queue) // it may get another place in the turn
	}
	r.do(func(d *queuesched.Scheduler) {
		d.Move(u.queue.id, queuesched.InTransit, to)
		if to == queuesched.Scheduled {
			d.SetDue(u.queue.id, r.due(u.queue), r.now)
		}
		d.CountBack(u.queue.id, []byte(u.host), u.consumer, r.now)
	})
}

// drop deletes a queue with its URLs.
func (r *rig) drop() {
	q := r.anyQueue()
	if q == nil {
		return
	}
	q.serving = nil
	r.do(func(d *queuesched.Scheduler) { d.Drop(q.id) })
	for _, u := range r.urls {
		if u.queue == q && u.state == queuesched.InTransit {
			r.land(u, queuesched.Completed)
		}
	}
	r.urls = slices.DeleteFunc(r.urls, func(u *url) bool { return u.queue == q })
	delete(r.queues, q.id)
	for _, c := range r.calls {
		delete(c.owed, q)
	}
	r.do(func(d *queuesched.Scheduler) { d.Free(q.id, r.now) })
}

// check compares all that can be asked without changing anything.
func (r *rig) check() {
	r.checkWaits()
	for _, c := range r.calls {
		for q, owed := range c.owed {
			c.owed[q] = owed && r.open(c, q)
		}
	}
	var total queuesched.Counts
	for id, q := range r.queues {
		var want queuesched.Counts
		for _, u := range r.urls {
			if u.queue == q {
				want.URLs[u.state]++
			}
		}
		want.Queues = 1
		if want.URLs[queuesched.Scheduled]+want.URLs[queuesched.InTransit] > 0 {
			want.Active = 1
		}
		for s, n := range want.URLs {
			total.URLs[s] += n
		}
		total.Queues++
		total.Active += want.Active
		if got := both(r,
			func(_ int, d *queuesched.Scheduler) queuesched.Counts { return d.QueueTotal(id) }); got != want {
			r.t.Fatalf("step %d: %+v has %+v; want %+v", r.step, q, got, want)
		}
		idle := want.Active == 0 || q.blocked > r.now
		r.checkWhy(q)
		if got := both(r, func(_ int, d *queuesched.Scheduler) bool { return d.Idle(id, r.now) }); got != idle {
			r.t.Fatalf("step %d: %+v is idle: %v; want %v", r.step, q, got, idle)
		}
		got := both(r, func(_ int, d *queuesched.Scheduler) string { return settingsText(d.SettingsOf(id)) })
		if text := settingsText(queuesched.Settings{Delay: ifSet(q.delay, q.delay >= 0),
			Blocked: ifSet(q.blocked, q.blocked > 0), Limit: ifSet(q.limit, q.limit > 0)}); got != text {
			r.t.Fatalf("step %d: settings of %+v are %s; want %s", r.step, q, got, text)
		}
	}
	total.Queues += hosts // keepHosts'
	if got := both(r, func(_ int, d *queuesched.Scheduler) queuesched.Counts { return d.Total() }); got != total {
		r.t.Fatalf("step %d: in all %+v; want %+v", r.step, got, total)
	}
}

// checkWhy sees that what is told of a queue is how it is.
func (r *rig) checkWhy(q *queue) {
	for _, consumer := range []queuesched.Consumer{queuesched.SlotConsumer, queuesched.FrontierConsumer} {
		type told struct {
			at   int64
			rule queuesched.Reason
		}
		got := both(r, func(_ int, d *queuesched.Scheduler) (w told) {
			w.at, w.rule = d.NotBefore(q.id, consumer, r.now)
			return w
		})
		open := r.ready(q, consumer) && (!q.mixed || r.free(q.key, consumer)) &&
			(consumer != queuesched.SlotConsumer || !r.hostOut(q.key, queuesched.RemoteConsumer))
		if (got.rule == queuesched.Open) != open || open != (got.at <= r.now) {
			r.t.Fatalf("step %d: at consumer %d %+v waits until %d by rule %d, now is %d; open is %v",
				r.step, consumer, q, got.at, got.rule, r.now, open)
		}
	}
}

func ifSet[T any](v T, set bool) *T {
	if !set {
		return nil
	}
	return &v
}

func settingsText(s queuesched.Settings) string {
	text := func(p *int64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	limit := "-"
	if s.Limit != nil {
		limit = fmt.Sprint(*s.Limit)
	}
	return text(s.Delay) + " " + text(s.Blocked) + " " + limit
}
