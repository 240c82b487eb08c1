package disk

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

const (
	purgeHold = 200                     // partitions that a purge ends under one lock, which takes about 1 ms
	lookHold  = 10 * embedded.LockBatch // partitions or transits that it reads under one lock
	tellHold  = 500                     // documents of one call of tell
)

// PurgeCrawl is [docindex.Crawls.PurgeCrawl]. The purge is on disk when it returns. After a crash
// before that, a part of it may be on disk.
func (s *Store) PurgeCrawl(
	ctx context.Context, id docindex.CrawlID, tell func(*docindex.Outcomes) (int, error),
) (purged int, err error) {
	s.base.Mu.Lock()
	b := s.crawls.stats.Find(id)
	s.base.Mu.Unlock()
	if b == nil || !b.Stopped { // a stopped crawl stays stopped
		return 0, ctx.Err()
	}
	if err := s.purgePartitions(ctx, b); err != nil {
		return 0, err
	}
	if err := s.forgetInSlots(ctx, b, tell); err != nil {
		return 0, err
	}
	if err := s.purgeReturned(); err != nil {
		return 0, err
	}
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	return s.crawls.stats.ReportPurged(b), s.db.usable()
}

// addPurged counts documents of a stopped crawl whose outcomes come later. The count is in memory
// only: after a restart, the outcomes of these documents and the purge of the others count.
func (s *Store) addPurged(b *crawlstats.CrawlStats, n int) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	b.Unreported += n
}

// purgePartitions ends the scheduled documents of a crawl.
func (s *Store) purgePartitions(ctx context.Context, b *crawlstats.CrawlStats) error {
	last := uint64(0)
	for next := uint32(1); next != 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if last, next, err = s.purgeSomePartitions(b, next); err != nil {
			return err
		}
		runtime.Gosched() // so that others wait for one portion at most, also for the processor
	}
	return s.db.waitSync(nil, last)
}

// purgeSomePartitions ends the scheduled documents of some partitions, beginning with number from.
// It does not wait for a sync. It returns the number of the commit, and the partition to continue
// with, or 0.
func (s *Store) purgeSomePartitions(b *crawlstats.CrawlStats, from uint32) (last uint64, next uint32, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return 0, 0, err
	}
	now, left := s.base.Now(), purgeHold
	for no := from; int(no) < len(s.crawls.partitions); no++ {
		if left == 0 || no == from+lookHold {
			next = no
			break
		}
		if c := s.crawls.partitions[no]; c != nil && c.domain.Crawl == b && c.docs > c.ended {
			if err := s.crawls.purge(no, now); err != nil {
				return 0, 0, s.txn.abort(err)
			}
			left--
		}
	}
	err = s.txn.commitLazily()
	return s.queues.journal.no, next, err
}

// purge ends the scheduled documents of a partition whose crawl was stopped. It leaves documents in
// transit alone.
func (x *crawls) purge(no uint32, now int64) error {
	c := x.partitions[no]
	queue, err := x.queues.cold.load([]byte(c.domain.Crawl.ID.Crawl), c.queue)
	if err == nil && queue == 0 { // the crawl ID of its queue is empty
		queue, err = x.queues.cold.loadAny(c.queue)
	}
	if err != nil || queue == 0 {
		return cmp.Or(err, errRow)
	}
	if !c.purged {
		c.purged, c.purgedAt = true, now
		x.txn.b.Set(numberKey(purgedRow, no), binary.AppendVarint(nil, now), nil)
	}
	lined := map[int32]uint64{}
	c.open.Each(func(priority int32, n uint64) { lined[priority] = n - c.inFlight.Of(priority) })
	for priority, n := range lined {
		if n > 0 {
			x.purgeScheduled(no, queue, priority, n, now)
		}
	}
	c.returnedAfterPurge = nil
	delete(x.withReturned, no)
	if x.queues.sched.QueueTotal(queue).URLs[queuesched.Scheduled] == 0 { // no document is left to hand out
		x.queues.at(queue).cursor, x.queues.at(queue).backfill = lastPlace, window{}
		x.queues.setDue(queue, queuesched.Never, now)
	}
	x.queues.sched.Refresh(queue, now) // its limit may be reached
	return nil
}

// purgeScheduled ends n scheduled documents of a priority in a purged partition of a queue.
func (x *crawls) purgeScheduled(no, queue uint32, priority int32, n uint64, now int64) {
	c := x.partitions[no]
	b := c.domain.Crawl
	x.shiftSome(no, priority, crawlstats.Scheduled, crawlstats.Completed, n, now)
	x.queues.moveSome(queue, queuesched.Scheduled, queuesched.Completed, uint32(n))
	x.countPurged(no, uint8(b.Why), n)
	x.queues.globals.outcomes[b.Why] += int(n)
	b.Unreported += int(n)
}

// lastOfPurged returns the last outcome of the documents that were purged with their partition.
func (c *partition) lastOfPurged() embedded.Last {
	why := c.domain.Crawl.Why
	if c.purgedAt == 0 {
		return embedded.LastBefore(uint8(why))
	}
	return embedded.LastOfKind(why, c.purgedAt)
}

// endsWithPartitionLocked reports whether an outcome ends a document in the slots in the same way
// as the purge of its partition ended the scheduled ones. Then its rows stay as they are. A
// document that a URL Frontier client or another daemon has needs new rows: a restart would restore
// its lease from the old.
func (s *Store) endsWithPartitionLocked(id uint32, why docindex.Kind) bool {
	t := s.transits.at(id)
	if t.member == 0 || t.leaseBatch != 0 {
		return false
	}
	c := s.crawls.partitions[t.member]
	return c.purged && c.domain.Crawl.Why == why
}

// noteReturned records that a document of a purged partition is scheduled again.
func (x *crawls) noteReturned(no uint32, n name) {
	c := x.partitions[no]
	if c.returnedAfterPurge == nil {
		c.returnedAfterPurge = map[name]struct{}{}
	}
	c.returnedAfterPurge[n] = struct{}{}
	x.withReturned[no] = struct{}{}
}

// purgeReturned ends the documents of purged partitions that are scheduled again.
func (s *Store) purgeReturned() error {
	for {
		b, no, more, err := s.purgeSomeReturned()
		if err == nil && b != nil {
			err = s.db.waitSync(b, no)
		}
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) purgeSomeReturned() (b *pebble.Batch, last uint64, more bool, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if len(s.crawls.withReturned) == 0 {
		return nil, 0, false, nil
	}
	if err := s.txn.begin(); err != nil {
		return nil, 0, false, err
	}
	now, left := s.base.Now(), purgeHold
	for no := range s.crawls.withReturned {
		if left--; left < 0 {
			break
		}
		if err := s.crawls.purge(no, now); err != nil {
			return nil, 0, false, s.txn.abort(err)
		}
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, len(s.crawls.withReturned) > 0, err
}
