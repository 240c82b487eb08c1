package queuesched

import (
	"math"
	"time"

	"urlserver/internal/container/hashindex"
	"urlserver/internal/container/timeheap"
)

// Cold has the queues that a store keeps on disk alone. The scheduler calls its methods, which may
// call Scheduler.Load and no other method of the scheduler.
type Cold interface {
	// FindQueue loads the queue of a crawl with a key and returns its number; 0: there is none.
	FindQueue(crawl uint32, key []byte) uint32
	// LoadQueues loads up to n queues of a crawl that may be served by the time until, those that have
	// waited longest first, and returns how many it loaded.
	LoadQueues(crawl uint32, n int, until int64) int
	// LoadOverran loads up to n queues of a crawl whose moment by NeededAt is OfOverran and not
	// after until, and returns how many it loaded. Each call continues where the last one ended.
	LoadOverran(crawl uint32, n int, until int64) int
	// HasRoom reports whether there is memory for more queues.
	HasRoom() bool
	// Recheck loads cold queues that wait for something that a setting may have changed, and reports
	// whether there are more. first: this call is the first one after a change.
	Recheck(first bool, now int64) (more bool)
	// FindHost returns what the store keeps of a host that is not in memory.
	FindHost(name []byte) (h KnownHost, ok bool)
}

// Moment is a time that orders what happens within a millisecond, too: milliseconds since 1970 above
// momentBits, below them a count.
type Moment int64

const momentBits = 10

// MomentOf returns the first moment of a millisecond.
func MomentOf(ms int64) Moment { return Moment(max(0, min(ms, Never>>momentBits)) << momentBits) }

// MS returns the millisecond of a moment.
func (m Moment) MS() int64 { return int64(m >> momentBits) }

// OfOverran reports whether a queue is needed at a moment, and not before, because its domain overran
// its budget.
func (m Moment) OfOverran() bool { return m != NoMoment && m&ofOverran == ofOverran }

const ofOverran = 1<<momentBits - 1

// NoMoment is later than any other.
const NoMoment = Moment(math.MaxInt64)

// moment returns a moment of the millisecond now. A count orders the moments of one millisecond.
func (d *Scheduler) moment(now int64) Moment {
	d.cold.moments++
	return MomentOf(now) | d.cold.moments&(1<<momentBits-1)
}

// KnownHost is what a store keeps of a host.
type KnownHost struct {
	Paused   int64 // clients get no URL of it before, ms
	Restored int64 // nor do the slots, which forgot the pause in a restart
	Gap      int64 // as in PauseHost
	Backoff  int64 // see Answered
}

// cold is what a scheduler knows of the queues that are not in memory. Without a store of cold
// queues it is empty.
type cold struct {
	of    Cold          // nil: all queues are in memory
	wakes timeheap.Heap // crawls with cold queues, by when the first of these may be served; IDs as in crawlTurns
	now   int64         // of the last Advance
	last  [2]uint32     // by consumer: the crawl that went last
	// crawls is memory of LoadReady
	crawls []uint32
	// moments counts those that moment returned
	moments Moment
}

// KeepCold sets the store of the queues that are not in memory.
func (d *Scheduler) KeepCold(of Cold) { d.cold.of, d.hosts.cold = of, of }

// WakeCrawl sets when the first cold queue of a crawl may be served; NoMoment: no cold queue waits.
func (d *Scheduler) WakeCrawl(crawl uint32, at Moment) {
	if at == NoMoment {
		d.cold.wakes.Remove(crawl + 1)
		return
	}
	d.cold.wakes.Set(crawl+1, time.Duration(at))
}

// WakeOf returns when the first cold queue of a crawl may be served, or NoMoment.
func (d *Scheduler) WakeOf(crawl uint32) Moment {
	if !d.cold.wakes.Has(crawl + 1) {
		return NoMoment
	}
	return Moment(d.cold.wakes.Due(crawl + 1))
}

// RestoreCrawl adds a crawl with its number and the counts of all its queues. Of its queues none is
// in memory, and none of its URLs is in transit.
func (d *Scheduler) RestoreCrawl(no uint32, crawlID string, n Counts) {
	for int(no) >= len(d.crawls) {
		d.crawls = append(d.crawls, crawl{})
	}
	c := &d.crawls[no]
	*c = crawl{name: crawlID, life: c.life + 1, stride: onePage, total: n}
	if weight, ok := d.weights[crawlID]; ok {
		c.stride = strideOf(weight)
	}
	d.crawlNo[crawlID] = no
	for s := range n.URLs {
		d.total.URLs[s] += n.URLs[s]
	}
	d.total.Queues += n.Queues
	d.total.Active += n.Active
}

// CrawlsRestored follows the last RestoreCrawl: numbers without a crawl may be used.
func (d *Scheduler) CrawlsRestored() {
	d.unused = d.unused[:0]
	for no := len(d.crawls) - 1; no >= 0; no-- {
		if d.crawls[no].total.Queues == 0 {
			d.unused = append(d.unused, uint32(no))
		}
	}
}

// CrawlNo returns the number of the crawl of a queue.
func (d *Scheduler) CrawlNo(id uint32) uint32 { return d.queues.At(id).crawl }

// FindCrawl returns the number of a crawl.
func (d *Scheduler) FindCrawl(crawlID []byte) (no uint32, ok bool) {
	no, ok = d.crawlNo[string(crawlID)]
	return no, ok
}

// CrawlBound returns one more than the largest number of a crawl.
func (d *Scheduler) CrawlBound() uint32 { return uint32(len(d.crawls)) }

// CrawlAt returns the crawl with a number and its counts; without queues there is none.
func (d *Scheduler) CrawlAt(no uint32) (crawlID string, n Counts) {
	if int(no) >= len(d.crawls) {
		return "", Counts{}
	}
	return d.crawls[no].name, d.crawls[no].total
}

// BytesInUse is Bytes without memory that is kept for further queues.
func (d *Scheduler) BytesInUse() int64 {
	return int64(d.names.Live()+d.hosts.names.Live()+d.domains.names.Live()) +
		int64(d.queues.Len())*(queueBytes+hashindex.EntryBytes) +
		int64(d.hosts.list.Len())*(hostBytes+hashindex.EntryBytes) +
		int64(d.domains.list.Len())*(domainBytes+hashindex.EntryBytes)
}

// InMemory returns how many queues are in memory.
func (d *Scheduler) InMemory() int { return d.queues.Len() }

// Load adds a cold queue, of which nothing is in transit. The counts have it already. due is when
// its first scheduled URL is due, or 0 if that is not known. turn is what NeededAt returned last.
func (d *Scheduler) Load(crawl uint32, key []byte, k Persisted, due int64, turn Moment, now int64) uint32 {
	id := d.addQueue(crawl, key)
	q := d.queues.At(id)
	if k.AnyHost {
		q.flags |= anyHost
	}
	if turn.MS() <= now {
		q.turn = turn
	}
	d.fill(q, k)
	if q.active() {
		q.due = due
		d.countActive(q, true)
	}
	d.Refresh(id, now)
	return id
}

// CountsAt records that the counts take the scheduled URLs of a queue that was just loaded as due
// at the given time; 0: as due now. SetDue then counts them anew, as their own times are not known.
func (d *Scheduler) CountsAt(id uint32, at, now int64) {
	q := d.queues.At(id)
	q.restored, q.restoredDue = q.count[Scheduled], at
	if q.due != 0 && q.due != at {
		d.spread(id, q.due, now)
	}
}

// CountLaterOf counts URLs of a cold queue that are due in the future.
func (d *Scheduler) CountLaterOf(crawl uint32, due, now int64, n uint64) {
	if due <= now {
		return
	}
	d.later.add(due, now, n)
	d.crawls[crawl].later.add(due, now, n)
}

// Evict removes a queue from memory. Its URLs stay in the counts. NeededAt must have allowed it.
func (d *Scheduler) Evict(id uint32, now int64) {
	d.unlist(id)
	d.leaveDomain(id, true)
	d.Free(id, now)
}

// NeededAt returns when a queue may be served next, as far as that is known: a moment in the past
// orders queues by how long they have waited. NoMoment: nothing of it is scheduled. ok is false for a
// queue that has to stay in memory: somebody has set something for it or its host, URLs of it or its
// host are in transit, it has a turn at its address, or it waits for an event whose time is not known.
func (d *Scheduler) NeededAt(id uint32, now int64) (at Moment, ok bool) {
	q := d.queues.At(id)
	if q.flags&(serving|gone) != 0 || q.count[InTransit] > 0 || q.out != [2]uint32{} || q.delay >= 0 ||
		q.limit > 0 || q.blocked > now || q.skipUntil > now {
		return 0, false
	}
	h := d.hosts.at(q.host)
	if h.overridden || h.out != [consumers]uint32{} || h.orphanedUntil > now || d.sides.kept[q.host].until > now {
		return 0, false
	}
	if !q.active() {
		return NoMoment, !d.addressFailed(id)
	}
	if q.due == Never || q.due <= now && d.atAddress(id) {
		return 0, false
	}
	if at = d.waitsSince(q); d.overran(q) {
		at = max(at, MomentOf(now+overranWait)|ofOverran)
	}
	return at, at < NoMoment
}

// overranWait is for how long queues of a domain that overran its budget count as not needed, in ms:
// other domains are to be in memory first.
const overranWait = 10 * 60_000

// overran reports whether the domain of a queue overran its budget and waits.
func (d *Scheduler) overran(q *queue) bool {
	no, c := d.domains.at(q.domain).own, &d.crawls[q.crawl]
	return no != 0 && c.overruns.list[no].Next > c.pages
}

// waitsSince returns the moment since which, or until which, a queue waits for its next turn at
// either side; NoMoment: it waits for an event whose time is not known.
func (d *Scheduler) waitsSince(q *queue) Moment {
	free := int64(Never)
	for _, consumer := range [...]Consumer{SlotConsumer, FrontierConsumer} {
		at, _ := d.notBefore(q, consumer, math.MinInt64, true)
		free = min(free, at)
	}
	if free == Never {
		return NoMoment
	}
	return max(MomentOf(free), q.turn)
}

const (
	loadAtOnce = 64 // queues that LoadReady and refill load at once
	loadRounds = 32 // times that a call loads queues and still finds none
)

// loadOlder loads cold queues of a crawl that have waited longer than the first queue in its ring,
// if there is memory for them. They go before that queue.
func (d *Scheduler) loadOlder(crawl uint32, consumer Consumer) {
	l := &d.crawls[crawl].rings[consumer]
	for first := l.next; l.next == first; {
		wake := d.WakeOf(crawl)
		if d.cold.of == nil || wake.MS() > d.cold.now || !d.cold.of.HasRoom() {
			return
		}
		at := d.waitsSince(d.queues.At(first))
		if at < wake {
			return
		}
		last := d.queues.At(first).link[consumer].before
		if d.cold.of.LoadQueues(crawl, loadAtOnce, d.cold.now) == 0 {
			return
		}
		if l.next == first && at > wake {
			l.next = d.queues.At(last).link[consumer].after
		}
	}
}

// hasNothing reports whether a crawl has no queue in its rings, but for those of domains that overran
// their budget.
func (c *crawl) hasNothing(consumer Consumer) bool {
	n := c.rings[consumer].count
	if c.overruns != nil {
		n -= c.overruns.queues[consumer]
	}
	return n == 0
}

// LoadReady loads cold queues that may be served by now, of the crawls that have nothing else for a
// consumer. It reports whether it loaded some. If all is true, it loads queues of all crawls, since
// the consumer has found nothing. Then, and for a crawl that has nothing at all, it also loads
// queues of domains that overran their budget before they are needed: otherwise such a crawl would
// have no turn beside others.
func (d *Scheduler) LoadReady(consumer Consumer, all bool, now int64) bool {
	if d.cold.of == nil {
		return false
	}
	d.cold.crawls = d.cold.crawls[:0]
	d.cold.wakes.Each(func(id uint32, _ time.Duration) bool {
		d.cold.crawls = append(d.cold.crawls, id-1)
		return true
	})
	loaded := false
	for _, crawl := range d.cold.crawls {
		loaded = d.loadReady(crawl, consumer.queueSide(), all, now) || loaded
	}
	return loaded
}

func (d *Scheduler) loadReady(crawl uint32, consumer Consumer, all bool, now int64) bool {
	c, wake := &d.crawls[crawl], d.WakeOf(crawl).MS()
	switch {
	case !all && !c.hasNothing(consumer):
		return false
	case wake <= now:
		return d.cold.of.LoadQueues(crawl, loadAtOnce, now) > 0
	case c.overruns == nil || wake > now+overranWait || !all && c.rings[consumer].count > 0:
		return false
	}
	return d.cold.of.LoadOverran(crawl, loadAtOnce, now+overranWait) > 0
}

// refill loads cold queues of the crawl that went last at a consumer if it has nothing else.
func (d *Scheduler) refill(consumer Consumer) { d.refillOf(d.cold.last[consumer], consumer) }

// refillOf loads cold queues of a crawl that has nothing else for a consumer.
func (d *Scheduler) refillOf(crawl uint32, consumer Consumer) {
	if d.cold.of != nil && int(crawl) < len(d.crawls) && d.crawls[crawl].hasNothing(consumer) &&
		d.WakeOf(crawl).MS() <= d.cold.now {
		d.cold.of.LoadQueues(crawl, loadAtOnce, d.cold.now)
	}
}

// loadFor is LoadReady for a call.
func (d *Scheduler) loadFor(c *Call, all bool, now int64) bool {
	switch {
	case d.cold.of == nil || d.crawlGone(c):
		return false
	case !c.one:
		return d.LoadReady(FrontierConsumer, all, now)
	}
	return d.loadReady(c.crawl, FrontierConsumer, all, now)
}

// maxHostCrawls is in how many crawls the queues of a host are looked for.
const maxHostCrawls = 10_000

// LoadHost loads the queues with a host as key.
func (d *Scheduler) LoadHost(name []byte) {
	if d.cold.of == nil {
		return
	}
	left := maxHostCrawls
	for _, crawl := range d.crawlNo {
		if left--; left < 0 {
			return
		}
		d.find(crawl, trimDot(name))
		if len(name) > 1 {
			d.find(crawl, append(trimDot(name[:len(name):len(name)]), '.'))
		}
	}
}

// recall sets the state of a host that was just added to what the store has kept of it.
func (h *hosts) recall(id uint32, k *KnownHost) {
	one := h.at(id)
	one.pausedUntil, one.restoredUntil, one.gap = k.Paused, k.Restored, k.Gap
	if one.backoff = uint32(k.Backoff); one.backoff > 0 {
		h.backingOff++
	}
}
