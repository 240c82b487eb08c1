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

// serving is one Serve on its way.
type serving struct {
	r      docindex.Request
	at     queuesched.Visits
	out    docindex.Served
	bytes  int // in out
	walker walker
	until  int64  // the leases of this portion
	grant  []byte // this portion's row

	gave     bool
	soon     <-chan struct{} // where nothing could be given, and something may be when this is closed
	patience embedded.Patience
}

// Serve is [docindex.Frontier.Serve]. A portion is given once its leases are on disk.
func (s *Store) Serve(ctx context.Context, r docindex.Request, give func(*docindex.Served) error) error {
	v := serving{r: r}
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
				more, err = s.lookAgain(ctx, &v)
			}
			if err != nil {
				return err
			}
			continue
		}
		v.gave = true
		if err := s.settle(b, no); err != nil {
			return err
		}
		if err := give(&v.out); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) beginServing(v *serving) error {
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
	v.at = s.doors.Visit(embedded.Wish(&v.r))
	return nil
}

// lookAgain begins a call anew that found nothing, once that may have changed; false: it has found nothing.
func (s *Store) lookAgain(ctx context.Context, v *serving) (bool, error) {
	if !v.patience.Wait(ctx, v.soon) {
		return false, nil
	}
	return true, s.beginServing(v)
}

// endServing gives back the queue that was being served.
func (s *Store) endServing(v *serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := v.at.Queue; id != 0 {
		s.doors.Leave(&v.at, s.queues[id].due, s.now(), s.nowUp())
	}
}

// serveSome fills a portion and commits its leases. more says that there is another one.
func (s *Store) serveSome(v *serving) (b *pebble.Batch, no uint64, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.soon = nil
	if s.passive {
		return nil, 0, false, nil
	}
	if err := s.beginLocked(); err != nil {
		return nil, 0, false, err
	}
	now := s.now()
	v.until = leaseEnd(now, v.r.Lease)
	v.grant = binary.AppendVarint(v.grant[:0], v.until)
	more = s.portionLocked(v, now)
	if err := v.walker.close(); err != nil {
		return nil, 0, false, s.abortLocked(err)
	}
	if s.failed != nil {
		return nil, 0, false, s.abortLocked(s.failed)
	}
	if !more && !v.gave && v.out.Len() == 0 && s.doors.Held(&v.at) {
		v.soon = s.bell.Next()
	}
	if v.out.Len() > 0 {
		s.txn.b.Set(countKey(grantRow, s.journal.no+1), v.grant, nil)
	}
	b, err = s.commitLocked()
	return b, s.journal.no, more, err
}

func (s *Store) portionLocked(v *serving, now int64) (more bool) {
	for range visitsPortion {
		if !s.doors.Go(&v.at) {
			return false
		}
		if err := s.walkLocked(&v.walker, v.at.Queue); err != nil {
			return false
		}
		if s.fillLocked(v, now) {
			return true
		}
		due := v.walker.due()
		v.walker.q.due = due
		s.doors.Leave(&v.at, due, now, s.nowUp())
	}
	return true
}

// fillLocked gives out what the queue may give; full says that the portion ended before.
func (s *Store) fillLocked(v *serving, now int64) (full bool) {
	w, queue := &v.walker, v.at.Queue
	for left := s.doors.LeftOf(&v.at); left > 0; left-- {
		if v.out.Len() >= hold || v.bytes >= portionBytes {
			return true
		}
		if !w.next(queuesched.Calls, now) {
			return false
		}
		v.out.Add(w.plan.url, s.doors.Key(queue), s.doors.Crawl(queue), w.plan.metadata)
		v.bytes += len(w.plan.url) + len(w.plan.metadata)
		v.grant = append(binary.BigEndian.AppendUint32(v.grant, w.q.no), w.at[:]...)
		t := w.departure(queuesched.Calls)
		t.grant = s.journal.no + 1
		s.departLocked(t, v.until, now)
		w.took()
		s.touch(queue).served[queuesched.Calls] = true
		v.at.Gave = true
	}
	return false
}
