package queuesched

// Kept is what a store that outlives its process keeps of a queue, beside its name.
type Kept struct {
	Scheduled, Completed uint32   // URLs; those in transit count as scheduled
	Served               [2]int64 // last time, by door; 0: never
	Delay                int64    // of its own, ms; negative: none
	Blocked              int64    // until then
	Limit                uint32   // of completed URLs; 0: none
	AnyHost              bool     // its URLs may be on different hosts
}

// Keep tells what is to be kept of a queue.
func (d *Doors) Keep(id uint32) Kept {
	q := d.queues.At(id)
	return Kept{
		Scheduled: q.count[Scheduled] + q.count[InTransit], Completed: q.count[Completed],
		Served: q.served, Delay: q.delay, Blocked: q.blocked, Limit: q.limit, AnyHost: q.flags&anyHost != 0,
	}
}

// Restore makes a queue of which nothing is in transit. What it has scheduled, if anything, may be due.
func (d *Doors) Restore(crawl, key []byte, k Kept, now int64) uint32 {
	host := key
	if k.AnyHost {
		host = nil
	}
	id := d.Open(crawl, key, host, now)
	q := d.queues.At(id)
	q.served, q.delay, q.blocked, q.limit = k.Served, k.Delay, k.Blocked, k.Limit
	q.count[Scheduled], q.count[Completed] = k.Scheduled, k.Completed
	for _, sum := range []*Counts{&d.total, &d.crawls[q.crawl].total} {
		sum.URLs[Scheduled] += uint64(k.Scheduled)
		sum.URLs[Completed] += uint64(k.Completed)
		if q.active() {
			sum.Active++
		}
	}
	if q.active() {
		q.due = 0
	}
	if q.flags&anyHost == 0 {
		h := d.hosts.at(q.host)
		h.called = max(h.called, k.Served[Calls])
	}
	d.Refresh(id, now)
	return id
}

// Preset tells what was set on a queue that is not there yet; false: nothing.
func (d *Doors) Preset(crawl, key []byte) (Settings, bool) {
	s, ok := d.preset[name{string(crawl), string(key)}]
	return s, ok
}
