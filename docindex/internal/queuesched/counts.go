package queuesched

// Count counts a new URL of a queue.
func (d *Scheduler) Count(id uint32, s State) { d.change(id, s, 1) }

// Uncount counts a URL that was removed from a queue.
func (d *Scheduler) Uncount(id uint32, s State) { d.change(id, s, -1) }

// Move counts a URL that changed its state.
func (d *Scheduler) Move(id uint32, from, to State) { d.MoveSome(id, from, to, 1) }

// MoveSome counts n URLs that changed their state.
func (d *Scheduler) MoveSome(id uint32, from, to State, n uint32) {
	if from == to {
		return
	}
	d.change(id, to, int(n))
	d.change(id, from, -int(n))
}

func (d *Scheduler) change(id uint32, s State, by int) {
	q := d.queues.At(id)
	if q.flags&gone != 0 {
		return
	}
	c := &d.crawls[q.crawl].total
	was := q.active()
	q.count[s] += uint32(by)
	c.URLs[s] += uint64(by)
	d.total.URLs[s] += uint64(by)
	if is := q.active(); is != was {
		c.Active += step(is)
		d.total.Active += step(is)
		d.countActive(q, is)
	}
}

// step returns the number that adds or subtracts one.
func step(up bool) uint64 {
	if up {
		return 1
	}
	return ^uint64(0)
}

func (q *queue) active() bool { return q.count[Scheduled]+q.count[InTransit] > 0 }

// uncount subtracts a queue's URLs from the sums.
func (d *Scheduler) uncount(q *queue) {
	c := &d.crawls[q.crawl].total
	for s, n := range q.count {
		c.URLs[s] -= uint64(n)
		d.total.URLs[s] -= uint64(n)
	}
	if q.active() {
		c.Active--
		d.total.Active--
	}
}

// Total returns the counts of all queues.
func (d *Scheduler) Total() Counts { return d.total }

// CrawlTotal returns the counts of a crawl.
func (d *Scheduler) CrawlTotal(crawlID []byte) Counts {
	c, ok := d.crawlNo[string(crawlID)]
	if !ok {
		return Counts{}
	}
	return d.crawls[c].total
}

// QueueTotal returns the counts of a queue.
func (d *Scheduler) QueueTotal(id uint32) (n Counts) {
	q := d.queues.At(id)
	for s := range q.count {
		n.URLs[s] = uint64(q.count[s])
	}
	n.Queues = 1
	if q.active() {
		n.Active = 1
	}
	return n
}

// Idle reports whether a queue is blocked or has nothing scheduled or in transit.
func (d *Scheduler) Idle(id uint32, now int64) bool {
	q := d.queues.At(id)
	return !q.active() || q.blocked > now
}

// AtSlots returns how many of a queue's URLs the slots have.
func (d *Scheduler) AtSlots(id uint32) uint32 { return d.queues.At(id).out[SlotConsumer] }

// AtSlotsOfDomain returns how many URLs of a queue's domain the slots of this daemon have.
func (d *Scheduler) AtSlotsOfDomain(id uint32) uint32 {
	return d.domains.at(d.queues.At(id).domain).out
}

// InTransit returns how many of a queue's URLs are in transit.
func (d *Scheduler) InTransit(id uint32) uint32 { return d.queues.At(id).count[InTransit] }
