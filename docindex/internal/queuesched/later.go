package queuesched

import (
	"time"

	"urlserver/internal/container/slab"
	"urlserver/internal/container/timeheap"
)

// later counts the scheduled URLs that are not due yet, by the second in which they will be, so
// that their number is known in O(1): each second is passed once. URLs that are due in more than a
// day count by the minute. The zero value is ready.
type later struct {
	n        uint64
	bySecond map[int64]uint32 // its moment
	moments  slab.Slab[moment]
	order    timeheap.Heap // of moments; a Duration is ms since 1970
}

// moment is a second or a minute, with the number of URLs that are due then.
type moment struct {
	second int64
	n      uint64
}

const (
	aDay     = 24 * 3600 * 1000
	aMinute  = 60
	inSecond = 1000
)

// secondOf returns the first second from whose beginning on a URL is due. The latest due times count as one second,
// as the sum would overflow.
func secondOf(due int64) int64 { return (min(due, Never-inSecond) + inSecond - 1) / inSecond }

func (l *later) add(due, now int64, n uint64) {
	second := secondOf(due)
	if due-now > aDay {
		second -= second % aMinute
	}
	if l.bySecond == nil {
		l.bySecond = map[int64]uint32{}
	}
	id, known := l.bySecond[second]
	if !known {
		id = l.moments.New()
		*l.moments.At(id) = moment{second: second}
		l.bySecond[second] = id
		l.order.Set(id, time.Duration(second*inSecond))
	}
	l.moments.At(id).n += n
	l.n += n
}

// remove removes a URL that is not due any more. It does nothing if the moment has passed.
func (l *later) remove(due int64, n uint64) {
	second := secondOf(due)
	for _, s := range [...]int64{second, second - second%aMinute} {
		if id, known := l.bySecond[s]; known && l.moments.At(id).n >= n {
			m := l.moments.At(id)
			m.n -= n
			l.n -= n
			if m.n == 0 {
				l.order.Remove(id)
				l.free(id)
			}
			return
		}
	}
}

// pass removes the moments that have passed, but no more than most.
func (l *later) pass(now int64, most int) {
	for range most {
		id, at, ok := l.order.Min()
		if !ok || int64(at) > now {
			return
		}
		l.order.Remove(id)
		l.n -= l.moments.At(id).n
		l.free(id)
	}
}

func (l *later) free(id uint32) {
	delete(l.bySecond, l.moments.At(id).second)
	l.moments.Free(id)
}

const passAtOnce = 1 << 16 // moments passed by a count; each was added once

// CountLater counts a scheduled URL of a queue that is due in the future; by is 1, or -1 if it is
// not scheduled any more, or not for then. It does nothing if the URL is due.
func (d *Scheduler) CountLater(id uint32, due, now int64, by int) {
	if due <= now || d.queues.At(id).flags&gone != 0 {
		return
	}
	for _, l := range [...]*later{&d.later, &d.crawls[d.queues.At(id).crawl].later} {
		l.pass(now, 2)
		if by > 0 {
			l.add(due, now, 1)
		} else {
			l.remove(due, 1)
		}
	}
}

// Later returns how many scheduled URLs of all crawls are not due yet.
func (d *Scheduler) Later(now int64) uint64 { return notDue(&d.later, &d.total, now) }

// CrawlLater returns how many scheduled URLs of a crawl are not due yet.
func (d *Scheduler) CrawlLater(crawlID []byte, now int64) uint64 {
	c, ok := d.crawlNo[string(crawlID)]
	if !ok {
		return 0
	}
	return notDue(&d.crawls[c].later, &d.crawls[c].total, now)
}

// notDue is at most the number of scheduled URLs: those of a dropped queue stay in l until they
// would have been due.
func notDue(l *later, sum *Counts, now int64) uint64 {
	l.pass(now, passAtOnce)
	return min(l.n, sum.URLs[Scheduled])
}

// dropLater removes the URLs of a crawl without queues from the sum.
func (d *Scheduler) dropLater(c *crawl) {
	for _, id := range c.later.bySecond {
		m := c.later.moments.At(id)
		d.later.remove(m.second*inSecond, m.n)
	}
	c.later = later{}
}

// spread counts the scheduled URLs of a restored queue as due later if its first one is. Their own
// times are not known: they count as due when the first one is, unless another one is the first by
// then.
func (d *Scheduler) spread(id uint32, due, now int64) {
	q := d.queues.At(id)
	for _, l := range [...]*later{&d.later, &d.crawls[q.crawl].later} {
		if q.restoredDue > now {
			l.remove(q.restoredDue, uint64(q.restored))
		}
	}
	left := min(q.restored, q.count[Scheduled])
	if q.restored, q.restoredDue = left, due; due == Never || left == 0 {
		q.restored, q.restoredDue = 0, 0
		return
	}
	if due > now {
		for _, l := range [...]*later{&d.later, &d.crawls[q.crawl].later} {
			l.add(due, now, uint64(left))
		}
	}
}
