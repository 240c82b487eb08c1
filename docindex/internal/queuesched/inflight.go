package queuesched

// InFlight is the state of a queue that is not Persisted.
type InFlight struct {
	InTransit      uint32
	Out            [2]uint32 // by consumer
	Due, SkipUntil int64
	Serving        bool // a call serves it
	Branched       bool // its URLs take turns
}

// HostInFlight is the state of a host.
type HostInFlight struct {
	Blocked, Delay, Asked    int64 // by its override
	Pause, FrontierLast, Gap int64
	Out                      [consumers]uint32
}

// RestoreInFlight adds a queue with the state that another scheduler has, to explain it.
func (d *Scheduler) RestoreInFlight(crawl, key []byte, k Persisted, a InFlight, now int64) {
	q := d.queues.At(d.Restore(crawl, key, k, now))
	q.count[InTransit], q.out, q.due, q.skipUntil = a.InTransit, a.Out, a.Due, a.SkipUntil
	if a.Serving {
		q.flags |= serving
	}
	if a.Branched {
		q.flags |= branched
	}
}

// RestoreWork says how many domains of a crawl with a queue have work in another scheduler.
func (d *Scheduler) RestoreWork(crawl string, domains uint32) {
	if no, ok := d.crawlNo[crawl]; ok {
		c := &d.crawls[no]
		c.domains, c.active, c.total.Active = domains, 1, 1
	}
}

// RestoreAtSlots says how many URLs of a domain the slots have, if its crawl has a queue.
func (d *Scheduler) RestoreAtSlots(crawl, domain string, n uint32) {
	if no, ok := d.crawlNo[crawl]; ok {
		if id := d.domains.find(no, domain); id != 0 {
			d.domains.at(id).out = n
		}
	}
}

// RestoreHostInFlight adds a host with the state that another scheduler has.
func (d *Scheduler) RestoreHostInFlight(name []byte, a HostInFlight) {
	id := d.hosts.open(name)
	h := d.hosts.at(id)
	h.pausedUntil, h.frontierLast, h.gap, h.out = a.Pause, a.FrontierLast, a.Gap, a.Out
	if h.overridden = a.Blocked > 0 || a.Delay > 0; h.overridden {
		d.hosts.overrides[id] = hostOverride{blocked: a.Blocked, delay: a.Delay, asked: a.Asked}
	}
}
