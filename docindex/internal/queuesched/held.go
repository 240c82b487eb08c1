package queuesched

// Held tells visits that found nothing whether that is only because of what may be over in a moment: queues that they
// want are being served by another call and may be served again at once, or have as many URLs in transit as is
// wanted at most. News come when some queue may be served that might not before.
func (d *Doors) Held(v *Visits) bool {
	held := false
	for _, id := range v.named {
		held = held || d.isNamed(v, id) && d.HeldOne(&v.call, id)
	}
	return held || len(v.wish.Key) == 0 && d.HeldAny(&v.call)
}

// HeldAny reports whether there are such queues for a call for which Next had none.
func (d *Doors) HeldAny(c *Call) bool {
	switch {
	case d.vain(c):
		return false
	case c.one:
		return d.crawls[c.crawl].lane.holds()
	case d.again > 0:
		return true
	}
	for _, crawl := range d.busy {
		if d.crawls[crawl].lane.holds() {
			return true
		}
	}
	return false
}

// HeldOne reports whether a queue is such a one.
func (d *Doors) HeldOne(c *Call, id uint32) bool {
	q := d.queues.At(id)
	full := q.link[Calls].level != 0 && q.count[InTransit] >= c.max
	return d.Live(id) && (full || q.flags&again != 0)
}

func (l *lane) holds() bool { return l.again > 0 || len(l.parked) > 0 }

// hold counts a queue that begins to be served, where no delay will keep it from being served again.
func (d *Doors) hold(q *queue) {
	q.flags |= serving
	if d.pace(q) == 0 {
		q.flags |= again
		d.crawls[q.crawl].lane.again++
		d.again++
	}
}

// release ends what hold began.
func (d *Doors) release(q *queue) {
	if q.flags&again != 0 {
		d.crawls[q.crawl].lane.again--
		d.again--
	}
	q.flags &^= serving | again
}
