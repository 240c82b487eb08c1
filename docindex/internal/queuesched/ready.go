package queuesched

import "time"

// SetDue sets when a queue's first scheduled URL is due; Never: it has none.
func (d *Scheduler) SetDue(id uint32, due, now int64) {
	q := d.queues.At(id)
	if q.due == due {
		return
	}
	if q.due == Never {
		q.turn = d.moment(now)
	}
	q.due = due
	if q.restored > 0 {
		d.spread(id, due, now)
	}
	d.Refresh(id, now)
}

// Refresh moves a queue to where it belongs, for all consumers.
func (d *Scheduler) Refresh(id uint32, now int64) {
	if d.queues.At(id).flags&gone != 0 {
		return
	}
	d.place(id, SlotConsumer, now)
	d.place(id, FrontierConsumer, now)
}

// place puts a queue into the ready ring, or into the heap, or removes it from both.
func (d *Scheduler) place(id uint32, consumer Consumer, now int64) {
	at, _ := d.notBefore(d.queues.At(id), consumer, now, true)
	if consumer == FrontierConsumer && d.addresses.of != nil {
		at = d.addressNotBefore(id, at, now)
	}
	if at <= now {
		d.wait[consumer].Remove(id)
		d.join(id, consumer, ready)
		return
	}
	d.leave(id, consumer)
	if at == Never {
		d.wait[consumer].Remove(id)
		return
	}
	d.wait[consumer].Set(id, time.Duration(at))
}

// full reports whether a queue has reached its limit. URLs that the slots have count as completed,
// since the slots take long to complete them.
func (q *queue) full(consumer Consumer) bool {
	count := q.count[Completed]
	if consumer == SlotConsumer {
		count += q.count[InTransit]
	}
	return q.limit > 0 && count >= q.limit
}

// after returns the end of a delay after a serving, or 0 if there was no serving or delay. The time
// of a serving may be rounded up; without a delay that must not matter.
func after(served, delay int64) int64 {
	if served == 0 || delay == 0 {
		return 0
	}
	return served + delay
}

// delayOf returns the delay between two servings of a queue to clients.
func (d *Scheduler) delayOf(q *queue) int64 {
	if q.delay >= 0 {
		return q.delay
	}
	return d.delay
}

// chosenDelay returns the delay that somebody has set for a queue. It holds for the slots, too. If
// nobody has, the slots keep only their own gap.
func (d *Scheduler) chosenDelay(q *queue) int64 {
	if q.delay >= 0 || d.chosen {
		return d.delayOf(q)
	}
	return 0
}

// Advance moves the queues that may be served by now into the rings, at most maxAdvance at each
// consumer. more reports whether some are left.
func (d *Scheduler) Advance(now int64) (more bool) {
	d.cold.now = now
	d.endDueOrphans(now)
	d.hosts.releaseDue(now)
	d.beginLookups(now)
	for consumer := range d.wait {
		wait := &d.wait[consumer]
		for n := 0; ; n++ {
			id, at, ok := wait.Min()
			if !ok || int64(at) > now {
				break
			}
			if n == maxAdvance {
				return true
			}
			d.place(id, Consumer(consumer), now)
		}
	}
	return false
}

const maxAdvance = 4096 // queues at a consumer; what calls Advance holds a lock

// readyRings has the queues that one consumer may be served: the ready ring, in which they take
// turns, and the rings of queues that are set aside.
type readyRings struct {
	next       uint32            // the next queue; 0: none
	capped     map[uint32]uint32 // rings of queues set aside, by the limit of URLs in transit that they had reached
	count      int
	reservable int // queues that are being served and may be served again at once
}

func (d *Scheduler) ringsOf(q *queue, consumer Consumer) *readyRings {
	return &d.crawls[q.crawl].rings[consumer]
}

// join puts a queue at the end of a ring, unless it is in one already.
func (d *Scheduler) join(id uint32, consumer Consumer, level uint32) {
	q := d.queues.At(id)
	if q.link[consumer].level != 0 {
		return
	}
	d.insert(id, consumer, level)
	if consumer == FrontierConsumer {
		d.onReady()
	}
	if l := d.ringsOf(q, consumer); l.add(1) == 1 {
		d.turns[consumer].begin(q.crawl, &d.crawls[q.crawl].pass[consumer])
	}
}

func (l *readyRings) add(n int) int {
	l.count += n
	return l.count
}

// insert puts a queue that is in no ring at the end of one. If its domain overran its budget, or the
// slots have enough of it, the ring of the domain is its ready ring.
func (d *Scheduler) insert(id uint32, consumer Consumer, level uint32) {
	q := d.queues.At(id)
	if no := d.ownRing(q); level == ready && no != 0 {
		c := &d.crawls[q.crawl]
		o := &c.overruns.list[no]
		q.link[consumer].level = own
		o.rings[consumer] = d.append(o.rings[consumer], id, consumer)
		o.queues[consumer]++
		c.overruns.queues[consumer]++
		if o.queues[consumer] == 1 {
			d.orderOverrun(c, no)
		}
		return
	}
	l := d.ringsOf(q, consumer)
	q.link[consumer].level = level
	l.setFirst(level, d.append(l.first(level), id, consumer))
}

// first returns the first queue of a ring.
func (l *readyRings) first(level uint32) uint32 {
	if level == ready {
		return l.next
	}
	return l.capped[level]
}

// firstOf returns the first queue of the ring that a queue is in.
func (d *Scheduler) firstOf(q *queue, consumer Consumer) uint32 {
	if q.link[consumer].level == own {
		return d.crawls[q.crawl].overruns.list[d.domains.at(q.domain).own].rings[consumer]
	}
	return d.ringsOf(q, consumer).first(q.link[consumer].level)
}

// setFirstOf makes a queue the first of the ring that q is in; 0: q was the last one there.
func (d *Scheduler) setFirstOf(q *queue, consumer Consumer, id uint32) {
	if q.link[consumer].level == own {
		d.crawls[q.crawl].overruns.list[d.domains.at(q.domain).own].rings[consumer] = id
		return
	}
	d.ringsOf(q, consumer).setFirst(q.link[consumer].level, id)
}

func (l *readyRings) setFirst(level, id uint32) {
	switch {
	case level == ready:
		l.next = id
	case id == 0:
		delete(l.capped, level)
	default:
		if l.capped == nil {
			l.capped = map[uint32]uint32{}
		}
		l.capped[level] = id
	}
}

// append puts id before first, which is the end of the ring, and returns the first queue of the
// ring.
func (d *Scheduler) append(first, id uint32, consumer Consumer) uint32 {
	a := &d.queues.At(id).link[consumer]
	if first == 0 {
		a.before, a.after = id, id
		return id
	}
	b := &d.queues.At(first).link[consumer]
	a.before, a.after = b.before, first
	d.queues.At(b.before).link[consumer].after = id
	b.before = id
	return first
}

// leave removes a queue from its ring, if it is in one.
func (d *Scheduler) leave(id uint32, consumer Consumer) {
	q := d.queues.At(id)
	if q.link[consumer].level == 0 {
		return
	}
	d.unlink(id, consumer)
	if d.ringsOf(q, consumer).add(-1) == 0 {
		d.turns[consumer].end(q.crawl)
	}
}

// unlink removes a queue from its ring. If the queue was next, the one after it is.
func (d *Scheduler) unlink(id uint32, consumer Consumer) {
	q := d.queues.At(id)
	a := q.link[consumer]
	switch {
	case a.after == id:
		d.setFirstOf(q, consumer, 0)
	case d.firstOf(q, consumer) == id:
		d.setFirstOf(q, consumer, a.after)
	}
	if a.after != id {
		d.queues.At(a.before).link[consumer].after = a.after
		d.queues.At(a.after).link[consumer].before = a.before
	}
	q.link[consumer] = link{}
	if a.level == own {
		c, no := &d.crawls[q.crawl], d.domains.at(q.domain).own
		c.overruns.queues[consumer]--
		if c.overruns.list[no].queues[consumer]--; c.overruns.list[no].queues[consumer] == 0 {
			d.orderOverrun(c, no)
		}
	}
}

// uncapQueue removes a queue that was set aside once it has fewer URLs in transit. place then puts
// it where it belongs.
func (d *Scheduler) uncapQueue(id uint32) {
	q := d.queues.At(id)
	if level := q.link[FrontierConsumer].level; level != 0 && level < own && q.count[InTransit] < level {
		d.leave(id, FrontierConsumer)
	}
}
