package queuesched

import "time"

// SetDue tells when a queue's first scheduled URL is due; Never where it has none.
func (d *Doors) SetDue(id uint32, due, now int64) {
	q := d.queues.At(id)
	if q.due == due {
		return
	}
	q.due = due
	d.Refresh(id, now)
}

// Refresh puts a queue where it belongs at both doors.
func (d *Doors) Refresh(id uint32, now int64) {
	if d.queues.At(id).flags&gone != 0 {
		return
	}
	d.place(id, Slots, now)
	d.place(id, Calls, now)
}

// place puts a queue into the ring of those that may be served, or into the heap, or nowhere.
func (d *Doors) place(id uint32, door Door, now int64) {
	at := d.when(d.queues.At(id), door)
	if at <= now {
		d.wait[door].Remove(id)
		d.join(id, door, ready)
		return
	}
	d.leave(id, door)
	if at == Never {
		d.wait[door].Remove(id)
		return
	}
	d.wait[door].Set(id, time.Duration(at))
}

// when is the time from which on a queue may be served at a door, or Never before something else happens. All rules
// about that stand here.
func (d *Doors) when(q *queue, door Door) int64 {
	if q.flags&serving != 0 || q.due == Never || q.full(door) {
		return Never
	}
	at := max(q.due, q.blocked, q.rest)
	if door == Calls {
		at = max(at, after(q.served[Calls], d.pace(q)), after(q.served[Slots], d.pace(q)))
		return d.whenHost(q, at)
	}
	if q.flags&anyHost == 0 {
		h := d.hosts.at(q.host)
		if h.out[Calls] > 0 {
			return Never
		}
		if at = max(at, h.before, d.hosts.free(h, Slots), d.hosts.allowed(q.host, Slots)); at == Never {
			return Never
		}
	}
	at = max(at, after(q.served[Calls], d.pace(q)))
	if own := d.ownPace(q); own > 0 {
		if q.out[Slots] > 0 {
			return Never
		}
		at = max(at, after(q.served[Slots], own))
	}
	return at
}

// whenHost is when calls may ask the host that all of a queue's URLs are on.
func (d *Doors) whenHost(q *queue, at int64) int64 {
	if q.flags&anyHost != 0 {
		return at
	}
	h := d.hosts.at(q.host)
	if h.outElsewhere(Calls) || d.bars(q.host, nil, Calls) {
		return Never
	}
	return max(at, h.pause, d.hosts.free(h, Calls), d.hosts.allowed(q.host, Calls))
}

// full reports whether a queue's limit keeps it from being served. The slots take long to complete what they are given,
// so that counts, too.
func (q *queue) full(door Door) bool {
	count := q.count[Completed]
	if door == Slots {
		count += q.count[InTransit]
	}
	return q.limit > 0 && count >= q.limit
}

// after is a delay after a serving; 0 where there was none. A serving may be rounded up, which no delay at all ignores.
func after(served, delay int64) int64 {
	if served == 0 || delay == 0 {
		return 0
	}
	return served + delay
}

// pace is the delay between two servings of a queue by calls.
func (d *Doors) pace(q *queue) int64 {
	if q.delay >= 0 {
		return q.delay
	}
	return d.delay
}

// ownPace is the delay that somebody chose for a queue, which holds for the slots, too; they have a pace of their
// own where nobody did.
func (d *Doors) ownPace(q *queue) int64 {
	if q.delay >= 0 || d.chosen {
		return d.pace(q)
	}
	return 0
}

// Advance puts into the rings what may be served by now, at most some of it; more is true where it left something.
func (d *Doors) Advance(now int64) (more bool) {
	d.hosts.sweep(now)
	for door := range d.wait {
		wait := &d.wait[door]
		for n := 0; ; n++ {
			id, at, ok := wait.Min()
			if !ok || int64(at) > now {
				break
			}
			if n == maxAdvance {
				return true
			}
			d.place(id, Door(door), now)
		}
	}
	return false
}

const maxAdvance = 4096 // queues at a door; what calls Advance holds a lock

// lane is the queues of one door that may be served: a ring in which they take turns, and the parked ones.
type lane struct {
	turn   uint32            // the queue that goes next; 0: none
	parked map[uint32]uint32 // rings of queues that had so many URLs in transit when a call that wanted no more came
	count  int
	again  int // queues that are being served and may be again at once
}

func (d *Doors) laneOf(q *queue, door Door) *lane {
	if door == Slots {
		return &d.slots
	}
	return &d.crawls[q.crawl].lane
}

// join puts a queue at the end of a ring, unless it is in one of its lane already.
func (d *Doors) join(id uint32, door Door, level uint32) {
	q := d.queues.At(id)
	if q.link[door].level != 0 {
		return
	}
	d.insert(id, door, level)
	if door == Calls {
		d.news()
	}
	if l := d.laneOf(q, door); l.add(1) == 1 && door == Calls {
		d.busy = append(d.busy, q.crawl)
		d.crawls[q.crawl].inBusy = len(d.busy)
	}
}

func (l *lane) add(n int) int {
	l.count += n
	return l.count
}

// insert puts a queue, which is in no ring, at the end of one.
func (d *Doors) insert(id uint32, door Door, level uint32) {
	q := d.queues.At(id)
	l := d.laneOf(q, door)
	q.link[door].level = level
	l.setTurn(level, d.append(l.at(level), id, door))
}

// at is the first queue of a ring.
func (l *lane) at(level uint32) uint32 {
	if level == ready {
		return l.turn
	}
	return l.parked[level]
}

func (l *lane) setTurn(level, id uint32) {
	switch {
	case level == ready:
		l.turn = id
	case id == 0:
		delete(l.parked, level)
	default:
		if l.parked == nil {
			l.parked = map[uint32]uint32{}
		}
		l.parked[level] = id
	}
}

// append puts id before first, which is the end of the ring, and returns the first of it.
func (d *Doors) append(first, id uint32, door Door) uint32 {
	a := &d.queues.At(id).link[door]
	if first == 0 {
		a.before, a.after = id, id
		return id
	}
	b := &d.queues.At(first).link[door]
	a.before, a.after = b.before, first
	d.queues.At(b.before).link[door].after = id
	b.before = id
	return first
}

// leave takes a queue out of its ring, if it is in one.
func (d *Doors) leave(id uint32, door Door) {
	q := d.queues.At(id)
	if q.link[door].level == 0 {
		return
	}
	d.unlink(id, door)
	if d.laneOf(q, door).add(-1) == 0 && door == Calls {
		d.unbusy(q.crawl)
	}
}

// unlink takes a queue out of its ring. If it was its turn, it is the next one's.
func (d *Doors) unlink(id uint32, door Door) {
	q := d.queues.At(id)
	a := q.link[door]
	q.link[door] = link{}
	l := d.laneOf(q, door)
	if a.after == id {
		l.setTurn(a.level, 0)
		return
	}
	d.queues.At(a.before).link[door].after = a.after
	d.queues.At(a.after).link[door].before = a.before
	if l.at(a.level) == id {
		l.setTurn(a.level, a.after)
	}
}

func (d *Doors) unbusy(c uint32) {
	i := d.crawls[c].inBusy - 1
	last := d.busy[len(d.busy)-1]
	d.busy[i] = last
	d.crawls[last].inBusy = i + 1
	d.busy = d.busy[:len(d.busy)-1]
	d.crawls[c].inBusy = 0
}

// unpark takes a queue out of those set aside once it has fewer URLs in transit; it is to be placed anew.
func (d *Doors) unpark(id uint32) {
	q := d.queues.At(id)
	if level := q.link[Calls].level; level != 0 && level != ready && q.count[InTransit] < level {
		d.leave(id, Calls)
	}
}
