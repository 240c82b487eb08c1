package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// Candidates is [docindex.Source.Candidates]. Documents that it hands out stay in transit until
// their outcomes, or a restart.
func (s *Store) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	return s.handOut(ctx, max, reject, 0, b)
}

// Lease is [docindex.Leaser.Lease]. The leases are on disk when it returns. So after a restart the
// daemons that have the documents go on with them, and nobody else may request the same hosts
// meanwhile.
func (s *Store) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	if err := embedded.CheckLease(lease); err != nil {
		return err
	}
	if err := s.handOut(ctx, max, reject, lease, b); err != nil || b.Len() == 0 {
		return err
	}
	s.base.Mu.Lock()
	no := s.queues.journal.no
	s.base.Mu.Unlock()
	return s.db.waitSync(nil, no)
}

// handOut hands out up to limit documents: with a lease, or without one if lease is 0.
func (s *Store) handOut(ctx context.Context, limit int, reject []string, lease time.Duration, b *docindex.Batch) error {
	err := embedded.HandOut(ctx, limit, len(reject), func(ask int) (got int, more bool, err error) {
		return s.handOutSome(ask, reject, lease, b)
	})
	if err != nil {
		return err
	}
	return s.purgeReturned()
}

func (s *Store) handOutSome(
	limit int, reject []string, lease time.Duration, b *docindex.Batch,
) (got int, more bool, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return 0, false, err
	}
	now := s.base.Now()
	if err := s.markSlotsLocked(now); err != nil {
		return 0, false, err
	}
	more = s.base.CatchUpLocked(now)
	until, consumer := int64(0), queuesched.SlotConsumer
	if lease > 0 {
		until, consumer = embedded.LeaseEnd(now, lease), queuesched.RemoteConsumer
		if err := s.txn.begin(); err != nil {
			return 0, false, err
		}
		s.txn.leased = binary.AppendVarint(s.txn.leased[:0], -until)
	}
	var w queueIterator
	loads := 0
	s.base.Sched.BeginRound(reject)
	s.base.Sched.LoadReady(consumer, false, now)
	for got < limit && err == nil {
		queue := s.base.Sched.NextForSlots(consumer)
		if queue == 0 {
			if loads++; loads > maxLoads || !s.base.Sched.LoadReady(consumer, true, now) {
				break
			}
			continue
		}
		if err = s.docs.iterate(&w, queue); err == nil && s.toSlotsLocked(&w, consumer, until, now, b) {
			got++
		}
	}
	s.base.Sched.EndRound(now)
	err = errors.Join(err, w.close(), s.db.failed)
	switch {
	case lease > 0:
		err = s.txn.commitLeases(got, err)
	case err == nil:
		err = s.txn.trim(now)
	}
	return got, more || w.more, err
}

// maxLoads is how often the store loads queues for the slots under one lock.
const maxLoads = 32

// toSlotsLocked gives the slots one document of a queue.
func (s *Store) toSlotsLocked(
	w *queueIterator, consumer queuesched.Consumer, until, now int64, b *docindex.Batch,
) bool {
	if !w.next(consumer, now) {
		s.base.Sched.Skip(w.id)
		s.queues.setDue(w.id, w.due(), now)
		return false
	}
	var room [givenLen]byte
	id := w.plan.id
	if len(id) == 0 {
		id = s.docs.namer.docID(room[:0], &w.name)
	}
	b.AddFor(id, w.plan.url, w.at.priority(), docindex.SpiderOf(w.plan.packed.Metadata()),
		s.base.Sched.Crawl(w.id))
	b.AttachPayload(w.plan.packed.Payload())
	t := w.departure(consumer)
	if until > 0 {
		t.leaseBatch = s.txn.lease(w)
	}
	s.dispatchLocked(t, until, now)
	w.took()
	due := w.due()
	w.q.due = due
	s.base.Sched.EndTurn(w.id, due, now)
	return true
}

const (
	slotMarkEvery = int64(time.Minute / time.Millisecond)
	slotMarkLast  = 10 * slotMarkEvery // a spider may have a document for this long after the mark
)

// markSlotsLocked writes once a minute that the slots are in use. After a restart the store treats
// all queues as served to the slots at that moment, and keeps their gaps.
func (s *Store) markSlotsLocked(now int64) error {
	if s.slotMark != 0 && now-s.slotMark < slotMarkEvery {
		return nil
	}
	if err := s.db.space.check(); err != nil {
		return err
	}
	if err := s.db.Set(metaKey(metaSlots), binary.AppendVarint(nil, now), pebble.NoSync); err != nil {
		return s.db.fail(err)
	}
	s.slotMark = now
	return nil
}

// Outcomes is [docindex.Source.Outcomes]: each completes its document, whatever the kind. One for a
// document that is unknown or completed changes nothing.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	defer s.base.WakeForRoom()
	return s.applyEach(ctx, o, s.endLocked)
}

// applyEach calls apply for each outcome, with the lock held, and writes what has changed in
// batches. It returns when the batches are as durable as the settings want them.
func (s *Store) applyEach(
	ctx context.Context, o *docindex.Outcomes, apply func(out *docindex.Outcome, now int64) error,
) error {
	return embedded.InBatches(ctx, o.Len(), func(from, to int) error {
		b, no, err := s.applySome(o, from, to, apply)
		if err != nil {
			return err
		}
		return s.db.waitSync(b, no)
	})
}

func (s *Store) applySome(
	o *docindex.Outcomes, from, to int, apply func(out *docindex.Outcome, now int64) error,
) (b *pebble.Batch, no uint64, err error) {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.txn.begin(); err != nil {
		return nil, 0, err
	}
	now := s.base.Now()
	for i := from; i < to; i++ {
		out := o.At(i)
		if err := apply(&out, now); err != nil {
			return nil, 0, s.txn.abort(err)
		}
	}
	b, err = s.txn.commit()
	return b, s.queues.journal.no, err
}

func (s *Store) endLocked(out *docindex.Outcome, now int64) error {
	n, d, err := s.docs.findID(out.DocID)
	if err != nil || d == nil {
		return err
	}
	url, ok, err := s.docs.ownURL(out, &n, d)
	if err != nil || !ok {
		return err
	}
	s.pauseLocked(out, url, now)
	transit := s.transits.of(&n)
	if d.completed || transit == 0 && embedded.DueMS(d.at.due()) > now && out.Kind.OfAttempt() { // rescheduled since
		return nil
	}
	if int(out.Kind) < docindex.Kinds {
		s.queues.globals.outcomes[out.Kind]++
		if out.Kind == docindex.OutOfScope {
			n := uint64(s.queues.globals.outcomes[out.Kind])
			s.txn.b.Set(metaKey(metaOutOfScope), binary.AppendUvarint(nil, n), nil)
		}
	}
	if d.member != 0 {
		s.crawls.partitions[d.member].domain.Crawl.Sent += uint64(out.Attempts)
	}
	queue := s.queues.byNumber(n.queue)
	if transit != 0 && s.endsWithPartitionLocked(transit, out.Kind) {
		s.endedLocked(queue, &n, d, now)
		s.crawls.countPurged(d.member, uint8(out.Kind), 1)
		return nil
	}
	if out.Again == 0 || s.crawls.isStopped(d.member) {
		return s.completeLocked(queue, n, d, url, embedded.LastOf(out, now), now)
	}
	if transit != 0 && s.transits.at(transit).consumer != queuesched.FrontierConsumer {
		s.queues.markDirty(queue).served[queuesched.SlotConsumer] = true
	}
	p := docindex.Put{URL: url, Crawl: []byte(s.base.Sched.Crawl(queue)),
		Due: embedded.AgainAt(out.Again, now), Priority: d.at.priority(), Metadata: out.Metadata}
	if err := s.docs.renew(&n, d, &p); err != nil {
		return err
	}
	d.last = embedded.LastOf(out, now)
	return s.updateLocked(queue, &n, d, &p, now)
}

// Pause is [docindex.Pauser.Pause].
func (s *Store) Pause(ctx context.Context, o *docindex.Outcomes) error {
	return s.applyEach(ctx, o, func(out *docindex.Outcome, now int64) error {
		s.pauseLocked(out, out.URL, now)
		return nil
	})
}

// pauseLocked records what an outcome says of a URL's host: until when URL Frontier clients get no
// URL of it, and its gap.
func (s *Store) pauseLocked(out *docindex.Outcome, url []byte, now int64) {
	host := docindex.HostOf(url)
	if len(host) == 0 || out.Pause <= 0 && out.Gap <= 0 {
		return
	}
	until, gap := now+out.Pause.Milliseconds(), out.Gap.Milliseconds()
	s.base.Sched.PauseHost(host, until, gap, now)
	paused, _, backoff := s.base.Sched.HostPause(host)
	s.queues.cold.keepPause(host, max(until, paused), gap, backoff, s.queues.journal.no+1)
}

// Return is [docindex.Returner.Return].
func (s *Store) Return(ctx context.Context, o *docindex.Outcomes) error {
	defer s.base.WakeForRoom()
	err := embedded.InBatches(ctx, o.Len(), func(from, to int) error { return s.returnSome(o, from, to) })
	if err != nil {
		return err
	}
	return s.purgeReturned()
}

func (s *Store) returnSome(o *docindex.Outcomes, from, to int) error {
	s.base.Mu.Lock()
	defer s.base.Mu.Unlock()
	if err := s.db.usable(); err != nil {
		return err
	}
	defer s.txn.clear()
	now := s.base.Now()
	for i := from; i < to; i++ {
		out := o.At(i)
		n, d, err := s.docs.findID(out.DocID)
		if err != nil {
			return s.db.fail(err)
		}
		if d == nil {
			continue
		}
		id := s.transits.of(&n)
		if id == 0 || s.transits.at(id).consumer == queuesched.FrontierConsumer {
			continue
		}
		_, own, err := s.docs.ownURL(&out, &n, d)
		if err != nil {
			return s.db.fail(err)
		}
		if own {
			s.finishLocked(id, docindex.Scheduled, now)
		}
	}
	return nil
}
