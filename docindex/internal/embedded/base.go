package embedded

import (
	"sync"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/queuesched"
	"urlserver/internal/container/timeheap"
)

// LockBatch is how many documents a store works on before it releases the lock.
const LockBatch = 1000

// Base is the part of a store that does not depend on where documents are kept. A store has one as
// a field, and embeds its [Contract].
type Base struct {
	Mu       sync.Mutex // guards the store; never held while functions that others registered are called
	Sched    *queuesched.Scheduler
	Crawls   *crawlstats.Stats
	Leases   timeheap.Heap // documents in transit by the end of their lease; a Duration is ms since 1970
	Inactive bool          // clients are not served
	Recalls  []func(*docindex.Outcomes)
	Forget   func(*docindex.Outcomes) // called by Delete; nil: nobody registered
	Body     Body

	settings crawlSettings
	start    time.Time
	elapsed  func() time.Duration // since start; never goes back
	notifier Notifier             // Broadcast when a queue becomes available to clients
	wakes    []func()
}

// Body has the methods of a store that its Base calls. The Base holds the lock when it calls them.
type Body interface {
	// UsableLocked returns why the store cannot be used, or nil.
	UsableLocked() error
	// LeaseEndedLocked schedules a document again whose lease has ended.
	LeaseEndedLocked(id uint32, now int64)
	// TotalsLocked returns the outcomes by kind, and the memory or disk in use.
	TotalsLocked() (outcomes [docindex.Kinds]int, bytes int64)
}

// Init makes b ready for a store.
func (b *Base) Init(body Body, crawls *crawlstats.Stats) {
	b.start, b.Body, b.Crawls = time.Now(), body, crawls
	b.elapsed = func() time.Duration { return time.Since(b.start) }
	b.Sched = queuesched.New(b.notifier.Broadcast)
}

// Now returns ms since 1970 by the monotonic clock since the start.
func (b *Base) Now() int64 {
	return b.start.UnixMilli() + b.elapsed().Milliseconds()
}

// NowUp is Now rounded up. A delay that counts from NowUp is not short by a fraction of a
// millisecond.
func (b *Base) NowUp() int64 {
	return b.start.UnixMilli() + int64((b.elapsed()+time.Millisecond-1)/time.Millisecond)
}

// SetClock replaces the clock before the store is used: elapsed returns the time since the store was
// made, and never goes back. It is for simulations.
func (b *Base) SetClock(elapsed func() time.Duration) {
	b.Mu.Lock() // a store may have goroutines that read the clock from the beginning
	defer b.Mu.Unlock()
	b.elapsed = elapsed
}

// CatchUpLocked ends leases that are over and makes available queues that are due, a bounded number
// of each. more reports whether some are left.
func (b *Base) CatchUpLocked(now int64) (more bool) {
	for range LockBatch {
		id, end, ok := b.Leases.Min()
		if !ok || int64(end) > now {
			return b.Sched.Advance(now)
		}
		b.Body.LeaseEndedLocked(id, now)
	}
	return true
}

// CatchUpAllLocked calls CatchUpLocked until nothing is left. It releases the lock between two
// calls.
func (b *Base) CatchUpAllLocked(now int64) {
	for b.CatchUpLocked(now) {
		b.YieldLocked()
	}
}

// RefreshLocked refreshes all queues. It releases the lock now and then.
func (b *Base) RefreshLocked() {
	for next := b.Sched.RefreshSome(0, b.Now()); next != 0; next = b.Sched.RefreshSome(next, b.Now()) {
		b.YieldLocked()
	}
}

// YieldLocked releases the lock for a moment.
func (b *Base) YieldLocked() {
	b.Mu.Unlock()
	b.Mu.Lock()
}

// Wake calls the functions that OnWake registered.
func (b *Base) Wake() {
	b.Mu.Lock()
	wakes := b.wakes
	b.Mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// WakeForRoom calls the functions that OnWake registered if the slots should ask again, since they
// have room for a queue whose documents take turns, or it is their turn at a host.
func (b *Base) WakeForRoom() {
	b.Mu.Lock()
	room := b.Sched.TakeRoom()
	b.Mu.Unlock()
	if room {
		b.Wake()
	}
}

// Recall calls the functions that OnRecall registered, unless there are no documents.
func (b *Base) Recall(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	b.Mu.Lock()
	recalls := b.Recalls
	b.Mu.Unlock()
	for _, recall := range recalls {
		recall(o)
	}
}

// Find returns the number of a queue, or 0.
func (b *Base) Find(s docindex.Scope) uint32 {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Sched.Find(s.Crawl, s.Key)
}

// NextQueue returns the first queue of a crawl with a larger number, or 0.
func (b *Base) NextQueue(crawl []byte, after uint32) (id uint32) {
	for from := after + 1; id == 0 && from != 0; {
		id, from = b.firstQueue(crawl, from)
	}
	return id
}

func (b *Base) firstQueue(crawl []byte, from uint32) (id, next uint32) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Sched.FirstQueue(crawl, from)
}

// DueMS converts a due time from seconds to ms.
func DueMS(seconds int64) int64 {
	if seconds > queuesched.Never/1000-1 {
		return queuesched.Never - 1
	}
	return seconds * 1000
}

// LeaseEnd returns when a lease that begins now is over, in whole ms and never too early.
func LeaseEnd(now int64, lease time.Duration) int64 {
	return now + int64((lease-1)/time.Millisecond) + 1
}
