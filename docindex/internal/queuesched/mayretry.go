package queuesched

import "time"

// MayRetry reports whether a call that found nothing should wait: a queue that it wants is busy
// with another call and may be served again right after it, or has as many URLs in transit as the
// call allows. onReady is called when such a queue may be served.
func (d *Scheduler) MayRetry(v *Cursor) bool {
	held := false
	for _, crawl := range v.named {
		id := d.Find([]byte(crawl), v.query.Key)
		held = held || id != 0 && d.MayRetryQueue(&v.call, id)
	}
	return held || len(v.query.Key) == 0 && d.MayRetryAny(&v.call)
}

// MayRetryAny is MayRetry for a call on all queues of its crawls.
func (d *Scheduler) MayRetryAny(c *Call) bool {
	switch {
	case d.crawlGone(c):
		return false
	case c.one:
		return d.crawls[c.crawl].rings[FrontierConsumer].mayRetry()
	case d.reservable > 0:
		return true
	}
	held := false
	d.turns[FrontierConsumer].order.Each(func(id uint32, _ time.Duration) bool {
		held = d.crawls[id-1].rings[FrontierConsumer].mayRetry()
		return !held
	})
	return held
}

// MayRetryQueue is MayRetry for one queue.
func (d *Scheduler) MayRetryQueue(c *Call, id uint32) bool {
	q := d.queues.At(id)
	full := q.link[FrontierConsumer].level != 0 && q.count[InTransit] >= c.max
	return d.Exists(id) && (full || q.flags&reservable != 0)
}

func (l *readyRings) mayRetry() bool { return l.reservable > 0 || len(l.capped) > 0 }

// startServing marks a queue as being served. It counts the queue as reservable if no delay
// follows.
func (d *Scheduler) startServing(q *queue) {
	q.flags |= serving
	if d.delayOf(q) == 0 {
		q.flags |= reservable
		d.crawls[q.crawl].rings[FrontierConsumer].reservable++
		d.reservable++
	}
}

// stopServing reverses startServing.
func (d *Scheduler) stopServing(q *queue) {
	if q.flags&reservable != 0 {
		d.crawls[q.crawl].rings[FrontierConsumer].reservable--
		d.reservable--
	}
	q.flags &^= serving | reservable
}
