package queuesched

// Call is one call of GetURLs on its way through the queues. Begin makes it.
type Call struct {
	no    uint32
	crawl uint32
	life  uint32 // of crawl's number
	one   bool   // crawl is the only one
	none  bool   // there is no such crawl
	max   uint32
}

// Begin begins a call for queues of a crawl, or of all, that have fewer URLs in transit than max; 0 means any number.
func (d *Doors) Begin(crawlID []byte, all bool, max uint32) Call {
	d.calls++
	if d.calls == 0 {
		d.calls = 1
	}
	c, ok := d.crawlNo[string(crawlID)]
	if max == 0 || max == ready {
		max = ready
	}
	call := Call{no: d.calls, crawl: c, one: !all, none: !all && !ok, max: max}
	if ok {
		call.life = d.crawls[c].life
	}
	return call
}

// vain reports whether a call is for a crawl that is not there, or no more.
func (d *Doors) vain(c *Call) bool {
	return c.none || c.one && d.crawls[c.crawl].life != c.life
}

// Next takes the queue whose turn it is out of its ring, for the call to serve; End gives it back. No queue
// comes twice in one call, unless others served it meanwhile. 0: there is none.
func (d *Doors) Next(c *Call) uint32 {
	if d.vain(c) {
		return 0
	}
	if c.one {
		return d.nextOf(c, c.crawl)
	}
	for tries := len(d.busy); tries > 0 && len(d.busy) > 0; tries-- {
		d.turn = (d.turn + 1) % len(d.busy)
		if id := d.nextOf(c, d.busy[d.turn]); id != 0 {
			return id
		}
	}
	return 0
}

func (d *Doors) nextOf(c *Call, crawl uint32) uint32 {
	l := &d.crawls[crawl].lane
	for l.turn != 0 {
		id := l.turn
		q := d.queues.At(id)
		if q.stamp == c.no {
			break // once round
		}
		if q.count[InTransit] < c.max {
			return d.begin(id, c)
		}
		d.park(id, c.max)
	}
	return d.nextParked(c, l)
}

// nextParked looks at what calls that wanted less have put aside: the least first, so that the order is always the
// same. Each pass takes a queue out of its ring there.
func (d *Doors) nextParked(c *Call, l *lane) uint32 {
	for {
		level := l.lowest(c.max)
		if level == c.max {
			return 0
		}
		id := l.parked[level]
		switch q := d.queues.At(id); {
		case q.count[InTransit] >= c.max:
			d.park(id, c.max)
		case q.stamp == c.no:
			d.park(id, ready) // the call has had it; it waits for the next one's turn
			d.news()          // who waits for it looks again, and puts it aside under less
		default:
			return d.begin(id, c)
		}
	}
}

// lowest is the lowest level that queues are parked under, below a bound; the bound where there is none.
func (l *lane) lowest(below uint32) uint32 {
	for level := range l.parked {
		below = min(below, level)
	}
	return below
}

// park puts a queue aside until it has fewer than so many URLs in transit, or, if ready, at the end of those that wait for their turn.
func (d *Doors) park(id, level uint32) {
	d.unlink(id, Calls)
	d.insert(id, Calls, level)
}

// Serve takes a queue by number for a call, if it may be served now.
func (d *Doors) Serve(c *Call, id uint32) bool {
	q := d.queues.At(id)
	if q.link[Calls].level == 0 {
		return false
	}
	if q.count[InTransit] >= c.max {
		if q.link[Calls].level == ready || q.link[Calls].level < c.max { // others may wait for more under the level that it has
			d.park(id, c.max)
		}
		return false
	}
	d.begin(id, c)
	return true
}

// Serves reports whether a call is still at a queue, which may have been dropped meanwhile.
func (d *Doors) Serves(c *Call, id uint32) bool {
	q := d.queues.At(id)
	return d.Live(id) && q.flags&serving != 0 && q.stamp == c.no
}

func (d *Doors) begin(id uint32, c *Call) uint32 {
	q := d.queues.At(id)
	q.stamp = c.no
	d.hold(q)
	d.leave(id, Calls)
	d.leave(id, Slots)
	return id
}

// Left is how many URLs a call that serves a queue may still take from it.
func (d *Doors) Left(c *Call, id uint32) uint32 {
	return c.max - min(c.max, d.queues.At(id).count[InTransit])
}

// End ends the serving of a queue. Where it gave nothing though it has something due, it is left alone for a
// while, so that it is in nobody's way.
func (d *Doors) End(c *Call, id uint32, gave bool, now int64) {
	q := d.queues.At(id)
	d.release(q)
	switch {
	case gave:
		q.served[Calls] = now
	case q.due <= now:
		q.rest = now + DefaultDelay
	}
	d.Refresh(id, now)
}

// NextForSlots returns the queue whose turn it is at a door, Slots or Lent, which stays where it is until Gave or Pass. Queues
// on hosts that are rejected, or out at the other one, are passed over; they keep their turn when Done ends the round.
func (d *Doors) NextForSlots(door Door) uint32 {
	for d.slots.turn != 0 {
		id := d.slots.turn
		q := d.queues.At(id)
		if q.flags&anyHost != 0 || !d.rejected(q.host) && !d.hosts.at(q.host).outElsewhere(door) {
			return id
		}
		d.Pass(id)
	}
	return 0
}

// Pass passes a queue over in this round.
func (d *Doors) Pass(id uint32) {
	d.leave(id, Slots)
	d.passed = append(d.passed, id)
}

// Gave says that a queue gave a URL to the slots: it is the next one's turn.
func (d *Doors) Gave(id uint32, due, now int64) {
	q := d.queues.At(id)
	q.due = due
	if q.link[Slots].level != 0 && d.slots.turn == id {
		d.slots.turn = q.link[Slots].after
	}
	d.Refresh(id, now)
}

// Done ends a round of NextForSlots, at either door.
func (d *Doors) Done(now int64) {
	for i := len(d.passed) - 1; i >= 0; i-- {
		id := d.passed[i]
		d.place(id, Slots, now)
		if d.queues.At(id).link[Slots].level != 0 {
			d.slots.turn = id
		}
	}
	d.passed = d.passed[:0]
}
