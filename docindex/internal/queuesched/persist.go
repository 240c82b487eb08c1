package queuesched

// Persisted is the state of a queue that a durable store keeps, beside its name.
type Persisted struct {
	Scheduled, Completed uint32   // URLs; those in transit count as scheduled
	Served               [2]int64 // last time, by consumer; 0: never
	Delay                int64    // the queue's own, ms; negative: none
	Blocked              int64    // until then
	Limit                uint32   // of completed URLs; 0: none
	AnyHost              bool     // its URLs may be on different hosts
}

// Persist returns the state of a queue for a durable store to keep.
func (d *Scheduler) Persist(id uint32) Persisted {
	q := d.queues.At(id)
	return Persisted{
		Scheduled: q.count[Scheduled] + q.count[InTransit], Completed: q.count[Completed],
		Served: q.served, Delay: q.delay, Blocked: q.blocked, Limit: q.limit, AnyHost: q.flags&anyHost != 0,
	}
}

// fill sets the state of a queue that the store has kept, and the times that the queue's host takes over from it.
func (d *Scheduler) fill(q *queue, k Persisted) {
	q.served, q.delay, q.blocked, q.limit = k.Served, k.Delay, k.Blocked, k.Limit
	q.count[Scheduled], q.count[Completed] = k.Scheduled, k.Completed
	if q.flags&anyHost == 0 {
		h := d.hosts.at(q.host)
		h.frontierLast = max(h.frontierLast, k.Served[FrontierConsumer])
	}
}

// Restore adds a queue of which nothing is in transit. Its scheduled URLs count as due.
func (d *Scheduler) Restore(crawl, key []byte, k Persisted, now int64) uint32 {
	host := key
	if k.AnyHost {
		host = nil
	}
	id := d.Open(crawl, key, host, now)
	q := d.queues.At(id)
	d.fill(q, k)
	q.restored = k.Scheduled
	for _, sum := range []*Counts{&d.total, &d.crawls[q.crawl].total} {
		sum.URLs[Scheduled] += uint64(k.Scheduled)
		sum.URLs[Completed] += uint64(k.Completed)
		if q.active() {
			sum.Active++
		}
	}
	if q.active() {
		q.due = 0
		d.countActive(q, true)
	}
	d.Refresh(id, now)
	return id
}

// Preset returns the settings of a queue that does not exist yet, and whether it has any.
func (d *Scheduler) Preset(crawl, key []byte) (Settings, bool) {
	s, ok := d.preset[name{string(crawl), string(key)}]
	return s, ok
}
