package queuesched

import (
	"time"

	"urlserver/internal/container/timeheap"
)

// Call is one GetURLs call of a client. BeginCall makes it.
type Call struct {
	no    uint32
	crawl uint32
	life  uint32 // of crawl's number
	one   bool   // only queues of crawl
	none  bool   // there is no such crawl
	max   uint32
}

// BeginCall begins a call on the queues of a crawl, or of all crawls, that have fewer than max URLs
// in transit; 0 means any number.
func (d *Scheduler) BeginCall(crawlID []byte, all bool, max uint32) Call {
	d.calls++
	if d.calls == 0 {
		d.calls = 1
	}
	c, ok := d.crawlNo[string(crawlID)]
	if max == 0 || max >= own {
		max = ready
	}
	call := Call{no: d.calls, crawl: c, one: !all, none: !all && !ok, max: max}
	if ok {
		call.life = d.crawls[c].life
	}
	return call
}

// crawlGone reports whether the crawl of a call does not exist, or no longer does.
func (d *Scheduler) crawlGone(c *Call) bool {
	return c.none || c.one && d.crawls[c.crawl].life != c.life
}

// NextForCall takes the next queue out of its ring, for the call to serve; EndServing puts it back.
// A queue comes twice in a call only if others served it meanwhile. 0: there is none.
func (d *Scheduler) NextForCall(c *Call, now int64) uint32 {
	if d.crawlGone(c) {
		return 0
	}
	if c.one {
		return d.nextOf(c, c.crawl, now)
	}
	return d.nextForAnyCrawl(c, now)
}

func (d *Scheduler) nextOf(c *Call, crawl uint32, now int64) uint32 {
	if id := d.nextOverrun(c, crawl, true, now); id != 0 {
		return id
	}
	l := &d.crawls[crawl].rings[FrontierConsumer]
	if l.next != 0 {
		d.loadOlder(crawl, FrontierConsumer)
	}
	for moved := 0; l.next != 0; {
		id := l.next
		q := d.queues.At(id)
		if q.callID == c.no {
			break // the call has had all queues of the ring
		}
		switch {
		case moved < maxSetAside && d.setAside(id, FrontierConsumer):
			moved++
		case q.count[InTransit] >= c.max:
			d.capQueue(id, c.max)
		case d.takeAddress(id, now):
			return d.begin(id, c)
		}
	}
	if id := d.nextCapped(c, l, now); id != 0 {
		return id
	}
	return d.nextOverrun(c, crawl, false, now)
}

// aside is a domain that nextOverrun has taken out of its heap, as it has nothing for the call, and
// the domain's turn.
type aside struct {
	no   uint32
	turn time.Duration
	in   *timeheap.Heap
}

// nextOverrun looks for a queue of the domains that overran their budget, the domain whose turn is
// next first. If due is true, it looks only at domains whose turn has come.
func (d *Scheduler) nextOverrun(c *Call, crawl uint32, due bool, now int64) (id uint32) {
	of := &d.crawls[crawl]
	if of.overruns == nil {
		return 0
	}
	d.aside = d.aside[:0]
	for found := false; !found; {
		var in *timeheap.Heap
		if id, in = of.firstOverrun(FrontierConsumer, due); id == 0 {
			break
		}
		switch q, no := d.queues.At(id), d.domains.at(d.queues.At(id).domain).own; {
		case q.callID == c.no && d.skipServed(c, &of.overruns.list[no]):
		case q.callID == c.no: // the call has had all queues of the domain
			d.aside = append(d.aside, aside{no, in.Due(no), in})
			in.Remove(no)
		case q.count[InTransit] >= c.max:
			d.capQueue(id, c.max)
		case d.takeAddress(id, now):
			found = true
		}
	}
	for _, one := range d.aside {
		one.in.Set(one.no, one.turn)
	}
	if id != 0 {
		d.begin(id, c)
	}
	return id
}

// skipServed moves queues that a call has served behind those that were set aside after them. It
// reports whether it has not served all.
func (d *Scheduler) skipServed(c *Call, o *overrun) bool {
	for range o.queues[FrontierConsumer] {
		q := d.queues.At(o.rings[FrontierConsumer])
		if q.callID != c.no {
			return true
		}
		o.rings[FrontierConsumer] = q.link[FrontierConsumer].after
	}
	return false
}

// nextCapped looks for a queue in the rings that calls with lower limits have set aside, the lowest
// limit first, so that the order is deterministic. Each pass takes one queue out of its ring there.
func (d *Scheduler) nextCapped(c *Call, l *readyRings, now int64) uint32 {
	for {
		level := l.lowest(c.max)
		if level == c.max {
			return 0
		}
		id := l.capped[level]
		switch q := d.queues.At(id); {
		case q.count[InTransit] >= c.max:
			d.capQueue(id, c.max)
		case q.callID == c.no:
			d.capQueue(id, ready) // the call has had it; it waits for the next call
			d.onReady()           // waiting calls look again and set it aside under their limit
		case d.takeAddress(id, now):
			return d.begin(id, c)
		}
	}
}

// lowest returns the lowest limit below a bound that has a ring; the bound if there is none.
func (l *readyRings) lowest(below uint32) uint32 {
	for level := range l.capped {
		below = min(below, level)
	}
	return below
}

// capQueue sets a queue aside until it has fewer URLs in transit than level, or, if level is ready,
// puts it at the end of the ready ring.
func (d *Scheduler) capQueue(id, level uint32) {
	d.unlink(id, FrontierConsumer)
	d.insert(id, FrontierConsumer, level)
}

// ServeQueue takes a queue by number for a call, if it may be served now.
func (d *Scheduler) ServeQueue(c *Call, id uint32, now int64) bool {
	q := d.queues.At(id)
	if q.link[FrontierConsumer].level == 0 {
		return false
	}
	if q.count[InTransit] >= c.max {
		// other calls may wait for it under a higher limit
		if q.link[FrontierConsumer].level >= own || q.link[FrontierConsumer].level < c.max {
			d.capQueue(id, c.max)
		}
		return false
	}
	if !d.takeAddress(id, now) {
		return false
	}
	d.begin(id, c)
	return true
}

// IsServing reports whether a call still serves a queue, which may have been dropped meanwhile.
func (d *Scheduler) IsServing(c *Call, id uint32) bool {
	q := d.queues.At(id)
	return d.Exists(id) && q.flags&serving != 0 && q.callID == c.no
}

func (d *Scheduler) begin(id uint32, c *Call) uint32 {
	q := d.queues.At(id)
	q.callID = c.no
	d.startServing(q)
	d.leave(id, FrontierConsumer)
	d.leave(id, SlotConsumer)
	return id
}

// LeftInCall returns how many URLs a call may still take from the queue that it serves.
func (d *Scheduler) LeftInCall(c *Call, id uint32) uint32 {
	return c.max - min(c.max, d.queues.At(id).count[InTransit])
}

// EndServing ends the serving of a queue. A queue that gave nothing although a URL is due is
// skipped for a while.
func (d *Scheduler) EndServing(c *Call, id uint32, gave bool, now int64) {
	q := d.queues.At(id)
	d.stopServing(q)
	d.returnAddress(id)
	switch {
	case gave:
		q.served[FrontierConsumer] = now
	case q.due <= now:
		q.skipUntil = now + DefaultDelay
		q.flags &^= resting
	}
	d.Refresh(id, now)
}

// NextForSlots returns the next queue for SlotConsumer or RemoteConsumer. The queue stays in its
// ring until EndTurn or Skip. NextForSlots skips queues on rejected hosts, and on hosts of which
// the other of the two consumers has URLs. EndRound gives the skipped queues their turn back.
func (d *Scheduler) NextForSlots(consumer Consumer) uint32 {
	for {
		d.refill(SlotConsumer)
		crawl, ok := d.turns[SlotConsumer].next()
		if !ok {
			return 0
		}
		d.cold.last[SlotConsumer] = crawl
		id := d.nextOfCrawl(crawl, consumer)
		if id == 0 {
			d.turns[SlotConsumer].end(crawl)
			d.supplied = append(d.supplied, crawl)
			continue
		}
		q := d.queues.At(id)
		if q.flags&anyHost != 0 || !d.rejected(q.host) && !d.hosts.at(q.host).outElsewhere(consumer) {
			return id
		}
		d.Skip(id)
	}
}

// nextOfCrawl returns the next queue for the slots of a crawl; 0: it has none for this round. If
// this daemon's slots have enough of a domain, those of other daemons may still take more.
func (d *Scheduler) nextOfCrawl(crawl uint32, consumer Consumer) uint32 {
	c := &d.crawls[crawl]
	d.orderSupplied(c)
	if id, _ := c.firstOverrun(SlotConsumer, true); id != 0 {
		return id
	}
	l := &c.rings[SlotConsumer]
	if l.next == 0 {
		d.refillOf(crawl, SlotConsumer)
	}
	for moved := 0; moved < maxSetAside && l.next != 0 && d.setAside(l.next, SlotConsumer); {
		moved++
	}
	if l.next != 0 {
		d.loadOlder(crawl, SlotConsumer)
		return l.next
	}
	if c.inTurn == d.hosts.round {
		return 0
	}
	id, _ := c.firstOverrun(SlotConsumer, false)
	if id == 0 && consumer == RemoteConsumer {
		id = c.firstSupplied()
	}
	return id
}

// Skip leaves a queue out of this round.
func (d *Scheduler) Skip(id uint32) {
	d.leave(id, SlotConsumer)
	d.skipped = append(d.skipped, id)
}

// EndTurn records that a queue gave a URL to the slots. The queue after it is the next to serve.
func (d *Scheduler) EndTurn(id uint32, due, now int64) {
	q := d.queues.At(id)
	q.due = due
	if q.link[SlotConsumer].level != 0 && d.firstOf(q, SlotConsumer) == id {
		d.setFirstOf(q, SlotConsumer, q.link[SlotConsumer].after)
	}
	d.Refresh(id, now)
}

// EndRound ends a round of NextForSlots and puts the skipped queues back.
func (d *Scheduler) EndRound(now int64) {
	d.sides.asked[SlotConsumer] = now
	for i := len(d.skipped) - 1; i >= 0; i-- {
		id := d.skipped[i]
		d.place(id, SlotConsumer, now)
		if q := d.queues.At(id); q.link[SlotConsumer].level != 0 {
			d.setFirstOf(q, SlotConsumer, id)
		}
	}
	d.skipped = d.skipped[:0]
	for _, crawl := range d.supplied {
		if c := &d.crawls[crawl]; c.rings[SlotConsumer].count > 0 {
			d.turns[SlotConsumer].order.Set(crawl+1, time.Duration(c.pass[SlotConsumer]))
		}
	}
	d.supplied = d.supplied[:0]
}
