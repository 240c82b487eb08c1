package disk

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

const (
	portionBytes  = 256 << 10 // of a portion of a Serve, about
	visitsPortion = 1000      // queues that a portion looks at
)

// serveCall is one Serve on its way.
type serveCall struct {
	r          docindex.Request
	cursor     queuesched.Cursor
	out        docindex.Served
	bytes      int // in out
	iter       queueIterator
	until      int64  // the leases of this portion
	leaseBatch []byte // this portion's row

	gave bool
	soon <-chan struct{} // where nothing could be given, and something may be when this is closed
	wait embedded.WaitBudget
}

// Serve is [docindex.Frontier.Serve]. A portion is given once its leases are on disk.
func (s *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	v := serveCall{r: r}
	if err := s.beginServing(&v); err != nil {
		return err
	}
	defer s.endServing(&v)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var b *pebble.Batch
		var no uint64
		var err error
		v.out.Reset()
		v.bytes = 0
		if b, no, more, err = s.serveSome(&v); err != nil {
			return err
		}
		if v.out.Len() == 0 {
			if !more {
				more, err = s.retry(ctx, &v)
			}
			if err != nil {
				return err
			}
			continue
		}
		v.gave = true
		if err := s.waitSync(b, no); err != nil {
			return err
		}
		if err := give(&v.out); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) beginServing(v *serveCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	now := s.now()
	for s.catchUpLocked(now) { // for the whole call; what it costs is owed once
		s.mu.Unlock()
		s.mu.Lock()
	}
	v.cursor = s.sched.Begin(embedded.Query(&v.r))
	return nil
}

// retry begins a call anew that found nothing, once that may have changed; false: it has found nothing.
func (s *Store) retry(ctx context.Context, v *serveCall) (bool, error) {
	if !v.wait.Wait(ctx, v.soon) {
		return false, nil
	}
	return true, s.beginServing(v)
}

// endServing gives back the queue that was being served.
func (s *Store) endServing(v *serveCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := v.cursor.Queue; id != 0 {
		s.sched.Release(&v.cursor, s.queues[id].due, s.now(), s.nowUp())
	}
}

// serveSome fills a portion and commits its leases. more says that there is another one.
func (s *Store) serveSome(v *serveCall) (b *pebble.Batch, no uint64, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.soon = nil
	if s.inactive {
		return nil, 0, false, nil
	}
	if err := s.beginLocked(); err != nil {
		return nil, 0, false, err
	}
	now := s.now()
	v.until = leaseEnd(now, v.r.Lease)
	v.leaseBatch = binary.AppendVarint(v.leaseBatch[:0], v.until)
	more = s.portionLocked(v, now)
	if err := v.iter.close(); err != nil {
		return nil, 0, false, s.abortLocked(err)
	}
	if s.failed != nil {
		return nil, 0, false, s.abortLocked(s.failed)
	}
	if !more && !v.gave && v.out.Len() == 0 && s.sched.MayRetry(&v.cursor) {
		v.soon = s.notifier.Next()
	}
	if v.out.Len() > 0 {
		s.txn.b.Set(countKey(leaseBatchRow, s.journal.no+1), v.leaseBatch, nil)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, more, err
}

func (s *Store) portionLocked(v *serveCall, now int64) (more bool) {
	for range visitsPortion {
		if !s.sched.Next(&v.cursor) {
			return false
		}
		if err := s.iterateLocked(&v.iter, v.cursor.Queue); err != nil {
			return false
		}
		if s.fillLocked(v, now) {
			return true
		}
		due := v.iter.due()
		v.iter.q.due = due
		s.sched.Release(&v.cursor, due, now, s.nowUp())
	}
	return true
}

// fillLocked gives out what the queue may give; full says that the portion ended before.
func (s *Store) fillLocked(v *serveCall, now int64) (full bool) {
	w, queue := &v.iter, v.cursor.Queue
	for left := s.sched.Left(&v.cursor); left > 0; left-- {
		if v.out.Len() >= lockBatch || v.bytes >= portionBytes {
			return true
		}
		if !w.next(queuesched.FrontierConsumer, now) {
			return false
		}
		v.out.Add(w.plan.url, s.sched.Key(queue), s.sched.Crawl(queue), w.plan.metadata)
		v.bytes += len(w.plan.url) + len(w.plan.metadata)
		v.leaseBatch = append(binary.BigEndian.AppendUint32(v.leaseBatch, w.q.no), w.at[:]...)
		t := w.departure(queuesched.FrontierConsumer)
		t.leaseBatch = s.journal.no + 1
		s.dispatchLocked(t, v.until, now)
		w.took()
		s.markDirty(queue).served[queuesched.FrontierConsumer] = true
		v.cursor.Gave = true
	}
	return false
}
