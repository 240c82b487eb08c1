package queuesched

// Ahead bounds the URLs that the slots of this daemon have of queues and domains that take turns;
// 0: any number. URLs in the slots keep their order. So the fewer the slots have, the sooner URLs
// that come later get their turn.
type Ahead struct {
	Queue   uint32 // of a queue whose URLs take turns, at all slots
	Domain  uint32 // of a domain
	Waiting uint32 // of a domain that is over its budget
}

// SetAhead sets how many URLs the slots have at most. For queues it takes effect with RefreshSome.
func (d *Scheduler) SetAhead(to Ahead) {
	d.ahead = to
	for id := uint32(1); int(id) < d.domains.list.Cap(); id++ {
		if d.domains.at(id).nameLen > 0 { // else it is free
			d.orderDomain(id)
		}
	}
}

// SetBranched records that the URLs of a queue wait in branches, which take turns.
func (d *Scheduler) SetBranched(id uint32, now int64) {
	if q := d.queues.At(id); q.flags&branched == 0 {
		q.flags |= branched
		d.Refresh(id, now)
	}
}

// most returns how many URLs of a domain the slots have at most.
func (d *Scheduler) most(c *crawl, one *domain) uint32 {
	if one.own != 0 && c.overruns.list[one.own].Next > c.pages {
		return d.ahead.Waiting
	}
	return d.ahead.Domain
}

// enough reports whether the slots have as many URLs of a domain as they take.
func (d *Scheduler) enough(c *crawl, one *domain) bool {
	most := d.most(c, one)
	return most > 0 && one.out >= most && !faulty(FaultAhead)
}

// countAhead counts a URL that the slots of this daemon have now (by is 1), or have no longer (-1).
func (d *Scheduler) countAhead(q *queue, by int) {
	if q.flags&gone != 0 {
		return
	}
	c, one := &d.crawls[q.crawl], d.domains.at(q.domain)
	one.out += uint32(by)
	if by > 0 {
		return // charge orders the domain
	}
	if one.own != 0 && one.out+1 == d.most(c, one) {
		d.room = d.room || c.overruns.list[one.own].queues[SlotConsumer] > 0
		d.orderOverrun(c, one.own)
	}
}

// enoughOf reports whether the slots have as many URLs of a queue's domain as they take.
func (d *Scheduler) enoughOf(id uint32) bool {
	q := d.queues.At(id)
	return d.enough(&d.crawls[q.crawl], d.domains.at(q.domain))
}

// noteRoom makes TakeRoom return true if the slots have half as many URLs of a branched queue as
// they may.
func (d *Scheduler) noteRoom(q *queue) {
	if q.flags&branched != 0 && q.out[SlotConsumer] == d.ahead.Queue/2 && q.count[Scheduled] > 0 {
		d.room = true
	}
}

// TakeRoom reports whether the slots should ask again, since they have room for URLs of a queue or
// domain of which they had enough, or it is their turn at a host.
func (d *Scheduler) TakeRoom() bool {
	room := d.room
	d.room = false
	return room
}
