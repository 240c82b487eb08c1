package queuesched

import "maps"

// One side at a time has URLs of a host: the slots, or URL Frontier clients. While both sides ask
// for URLs they take turns at each host:
//
//   - A turn is as many URLs as SetAhead says. One call of a client may get more. When the side
//     has got that many, it gets no further URL of the host until all of them have come back.
//   - Then the scheduler keeps the host for the other side, until that has got a URL of it or
//     turnWait is over. Within a turn it keeps the host for the side whose turn it is.
//
// The scheduler keeps no host for clients that ask only for crawls without URLs of the host.
//
// When clients begin to ask, the slots give back the URLs that they have not sent: they may have
// taken far more than a turn while they were alone.
const (
	turnWait   = 5_000  // ms for which a host is kept for the other side
	asksFor    = 60_000 // ms for which a side counts as asking for URLs after its last request
	sweepTurns = 1024   // the first sweep runs when this many hosts are kept
)

// hostTurns has when each side last asked for URLs, and the hosts that are kept for one.
type hostTurns struct {
	asked [2]int64 // by consumer; 0: never
	any   int64    // when clients last asked for URLs of any crawl; of one: crawl.asked
	kept  map[uint32]keptHost
	sweep int // the next sweep runs when this many hosts are kept
}

// keptHost is a host that is kept for a consumer.
type keptHost struct {
	until int64
	of    Consumer
}

// other returns the other side.
func (c Consumer) other() Consumer {
	if c.queueSide() == SlotConsumer {
		return FrontierConsumer
	}
	return SlotConsumer
}

// asks reports whether a side asks for URLs, so that the other one has to share hosts with it.
func (d *Scheduler) asks(side Consumer, now int64) bool {
	return d.ahead.Queue > 0 && d.sides.asked[side] > 0 && now-d.sides.asked[side] < asksFor
}

// asksFor reports whether a side, which asks for URLs, asks for those of a queue.
func (d *Scheduler) asksFor(side Consumer, q *queue, now int64) bool {
	last := max(d.sides.any, d.crawls[q.crawl].asked)
	return side == SlotConsumer || last > 0 && now-last < asksFor
}

// BeginsToShare records which crawls clients ask for. It reports whether the slots have to give
// back the URLs that they have not sent, because up to now only they asked for URLs.
func (d *Scheduler) BeginsToShare(w Query, now int64) bool {
	begins := !d.asks(FrontierConsumer, now)
	d.sides.asked[FrontierConsumer] = now
	if c, ok := d.crawlNo[string(w.Crawl)]; w.AnyCrawl {
		d.sides.any = now
	} else if ok {
		d.crawls[c].asked = now
	}
	return begins && d.asks(SlotConsumer, now)
}

// isTurnOver reports whether a consumer has been given enough of a host for now.
func (d *Scheduler) isTurnOver(h *host, consumer Consumer, now int64) bool {
	return h.taken >= d.ahead.Queue && h.out[consumer] > 0 && d.asks(consumer.other(), now)
}

// keptUntil returns until when a host is kept from a consumer.
func (d *Scheduler) keptUntil(id uint32, consumer Consumer) int64 {
	if k, ok := d.sides.kept[id]; ok && k.of != consumer.queueSide() {
		return k.until
	}
	return 0
}

// took counts a URL of a host that a consumer is being given.
func (d *Scheduler) took(id uint32, h *host, consumer Consumer) {
	if h.out == [consumers]uint32{} {
		if k, ok := d.sides.kept[id]; !ok || k.of != consumer.queueSide() {
			h.taken = 0
		}
		delete(d.sides.kept, id)
	}
	h.taken++
}

// askableFrom returns when a side may be given a URL of a host that it asks for, and why not before.
func (d *Scheduler) askableFrom(h *host, side Consumer, now int64) (from int64, why Reason) {
	from = Never
	for id := h.queues; id != 0; id = d.queues.At(id).hostNext {
		if q := d.queues.At(id); d.asksFor(side, q, now) {
			if at, by := d.notBefore(q, side, now, false); at < from {
				from, why = at, by
			}
		}
	}
	return from, why
}

// ofQueue reports whether a reason is about a queue alone: other queues of its host do not wait for
// it, and it does not last longer when these are served.
func (r Reason) ofQueue() bool {
	return r == QueueBlocked || r == QueueDelayed || r == PassedOver || r == NotYetDue
}

// keep is called when a consumer has no URLs of a host any more. If both sides ask for URLs, it
// keeps the host for the side whose turn is next. A side that may get none of it for long, because
// of a delay of a queue for instance, passes its turn.
func (d *Scheduler) keep(id uint32, h *host, consumer Consumer, now int64) {
	if !d.asks(consumer.other(), now) {
		return
	}
	next := consumer.queueSide()
	if h.taken >= d.ahead.Queue {
		next, h.taken = consumer.other(), 0
	}
	from, why := d.askableFrom(h, next, now)
	if from == Never {
		return // the host has no URL for it
	}
	if from > now+turnWait && why.ofQueue() {
		if other, _ := d.askableFrom(h, next.other(), now); other < from {
			return // the other side gets URLs until then
		}
	}
	t := &d.sides
	if t.kept == nil {
		t.kept, t.sweep = map[uint32]keptHost{}, sweepTurns
	}
	if len(t.kept) >= t.sweep {
		maps.DeleteFunc(t.kept, func(_ uint32, k keptHost) bool { return k.until <= now })
		t.sweep = max(sweepTurns, 2*len(t.kept))
	}
	t.kept[id] = keptHost{until: from + turnWait, of: next}
	d.room = d.room || next == SlotConsumer
}
