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

// serving is the state of one Serve.
type serving struct {
	embedded.Serving
	bytes      int // in Out
	iter       queueIterator
	leaseBatch []byte // the row with the leases of this portion
}

// Serve is [docindex.Frontier.Serve]. It calls give with the URLs of a portion once their leases
// are on disk.
func (s *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	v := serving{Serving: embedded.Serving{Request: r}}
	if err := s.base.BeginServing(&v.Serving); err != nil {
		return err
	}
	if v.Recall {
		s.recall(docindex.Setting{})
	}
	defer s.endServing(&v)
	return s.base.Serve(ctx, &v.Serving, func() (bool, error) {
		v.bytes = 0
		b, no, more, err := s.serveSome(&v)
		if err == nil && v.Out.Len() > 0 {
			err = s.db.waitSync(b, no)
		}
		return more, err
	}, give)
}

// endServing releases the queue that was being served.
func (s *Store) endServing(v *serving) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if id := v.Cursor.Queue; id != 0 {
		s.base.Sched.Release(&v.Cursor, s.queues.at(id).due, s.base.Now(), s.base.NowUp())
	}
}

// serveSome fills a portion and commits its leases. more reports whether there is another portion.
func (s *Store) serveSome(v *serving) (b *pebble.Batch, no uint64, more bool, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if s.base.Inactive {
		return nil, 0, false, nil
	}
	if err := s.txn.begin(); err != nil {
		return nil, 0, false, err
	}
	now := s.base.Now()
	s.base.BeginPortionLocked(&v.Serving, now)
	v.leaseBatch = binary.AppendVarint(v.leaseBatch[:0], v.Until)
	more = s.portionLocked(v, now)
	if err := v.iter.close(); err != nil {
		return nil, 0, false, s.txn.abort(err)
	}
	if s.db.failed != nil {
		return nil, 0, false, s.txn.abort(s.db.failed)
	}
	s.base.PortionDoneLocked(&v.Serving, more)
	if v.Out.Len() > 0 {
		s.txn.b.Set(countKey(leaseBatchRow, s.queues.journal.no+1), v.leaseBatch, nil)
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, more, err
}

func (s *Store) portionLocked(v *serving, now int64) (more bool) {
	for range visitsPortion {
		if !s.base.Sched.Next(&v.Cursor, now) {
			return false
		}
		if err := s.docs.iterate(&v.iter, v.Cursor.Queue); err != nil {
			return false
		}
		if s.fillLocked(v, now) {
			return true
		}
		due := v.iter.due()
		v.iter.q.due = due
		s.base.Sched.Release(&v.Cursor, due, now, s.base.NowUp())
	}
	return true
}

// fillLocked hands out URLs of the current queue. full reports whether the portion has no room for
// further URLs.
func (s *Store) fillLocked(v *serving, now int64) (full bool) {
	w, queue := &v.iter, v.Cursor.Queue
	for left := s.base.Sched.Left(&v.Cursor); left > 0; left-- {
		if v.Out.Len() >= embedded.LockBatch || v.bytes >= portionBytes {
			return true
		}
		if !w.next(queuesched.FrontierConsumer, now) {
			return false
		}
		v.bytes += len(w.plan.url) + len(w.plan.packed)
		v.leaseBatch = append(binary.BigEndian.AppendUint32(v.leaseBatch, w.q.no), w.at[:]...)
		t := w.departure(queuesched.FrontierConsumer)
		t.leaseBatch = s.queues.journal.no + 1
		doc := s.dispatchLocked(t, v.Until, now)
		v.Add(doc, w.plan.url, s.base.Sched.Key(queue), s.base.Sched.Crawl(queue), w.plan.packed)
		w.took()
		s.queues.markDirty(queue).served[queuesched.FrontierConsumer] = true
		v.Cursor.Gave = true
	}
	return false
}

// Answered is [docindex.Frontier.Answered]. Answers that put off a host are on disk when it returns.
func (s *Store) Answered(ctx context.Context, all []docindex.HostAnswer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, no, err := s.answered(all)
	if b == nil {
		return err
	}
	return s.db.waitSync(b, no)
}

func (s *Store) answered(all []docindex.HostAnswer) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return nil, 0, err
	}
	now := s.base.Now()
	for i := range all {
		_, _, was := s.base.Sched.HostPause(all[i].Host)
		until := s.base.Sched.Answered(&all[i], now)
		if paused, gap, backoff := s.base.Sched.HostPause(all[i].Host); until > now || backoff != was {
			s.queues.cold.keepPause(all[i].Host, max(until, paused, now), gap, backoff, s.queues.journal.no+1)
		}
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, err
}
