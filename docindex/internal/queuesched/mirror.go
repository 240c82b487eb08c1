package queuesched

// Afoot is what is under way of a queue, beside what is kept of it.
type Afoot struct {
	InTransit uint32
	Out       [2]uint32 // by door
	Due, Rest int64
	Serving   bool // a call is at it
}

// HostAfoot is what is known of a host.
type HostAfoot struct {
	Blocked, Delay, Asked int64 // by its order
	Pause, Called, Gap    int64
	Out                   [all]uint32
}

// Mirror makes a queue as another keeper of queues has it, to be looked at.
func (d *Doors) Mirror(crawl, key []byte, k Kept, a Afoot, now int64) {
	q := d.queues.At(d.Restore(crawl, key, k, now))
	q.count[InTransit], q.out, q.due, q.rest = a.InTransit, a.Out, a.Due, a.Rest
	if a.Serving {
		q.flags |= serving
	}
}

// MirrorHost makes a host as another has it.
func (d *Doors) MirrorHost(name []byte, a HostAfoot) {
	id := d.hosts.open(name)
	h := d.hosts.at(id)
	h.pause, h.called, h.gap, h.out = a.Pause, a.Called, a.Gap, a.Out
	if h.ordered = a.Blocked > 0 || a.Delay > 0; h.ordered {
		d.hosts.orders[id] = order{blocked: a.Blocked, delay: a.Delay, asked: a.Asked}
	}
}
