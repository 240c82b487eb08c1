package memory

import (
	"context"
	"time"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Candidates is [docindex.Source.Candidates]. Documents that it hands out stay in transit until their outcomes.
func (m *Store) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	return m.handOut(ctx, max, reject, 0, b)
}

// Lease is [docindex.Leaser.Lease].
func (m *Store) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	if err := embedded.CheckLease(lease); err != nil {
		return err
	}
	return m.handOut(ctx, max, reject, lease, b)
}

// handOut hands out up to limit documents: with a lease, or without one if lease is 0.
func (m *Store) handOut(ctx context.Context, limit int, reject []string, lease time.Duration, b *docindex.Batch) error {
	return embedded.HandOut(ctx, limit, len(reject), func(ask int) (got int, more bool, err error) {
		got, more = m.handOutSome(ask, reject, lease, b)
		return got, more, nil
	})
}

func (m *Store) handOutSome(limit int, reject []string, lease time.Duration, b *docindex.Batch) (got int, more bool) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	now := m.base.Now()
	more = m.base.CatchUpLocked(now)
	consumer := queuesched.SlotConsumer
	if lease > 0 {
		consumer = queuesched.RemoteConsumer
	}
	m.purges = embedded.LockBatch
	m.base.Sched.BeginRound(reject)
	for got < limit {
		queue := m.base.Sched.NextForSlots(consumer)
		if queue == 0 {
			break
		}
		id := m.pickLocked(queue, consumer, now)
		if id == 0 {
			m.base.Sched.Skip(queue)
			continue
		}
		m.toSlotsLocked(id, consumer, lease, now, b)
		got++
	}
	m.base.Sched.EndRound(now)
	return got, more
}

func (m *Store) toSlotsLocked(
	id uint32, consumer queuesched.Consumer, lease time.Duration, now int64, b *docindex.Batch,
) {
	until := int64(0)
	if lease > 0 {
		until = embedded.LeaseEnd(now, lease)
	}
	r := m.docs.records.At(id)
	m.dispatchLocked(id, consumer, until, now)
	m.base.Sched.EndTurn(r.queue, m.dueLocked(r.queue), now)
	var name [20]byte // a uint64 in decimal
	packed := m.docs.extra(r).packed
	b.AddFor(m.docs.docID(name[:0], id), m.docs.url(r), r.priority,
		docindex.SpiderOf(packed.Metadata()), m.base.Sched.Crawl(r.queue))
	b.AttachPayload(packed.Payload())
}

// Outcomes is [docindex.Source.Outcomes]. The outcome of an attempt changes nothing if the document
// is scheduled for later: a Put has updated the document since it was handed out.
func (m *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	defer m.base.WakeForRoom()
	return m.each(ctx, o, m.endLocked)
}

// EachPause is [docindex.Pauser.EachPause]. A new store has no pauses.
func (m *Store) EachPause(ctx context.Context, _ func([]byte, time.Duration)) error { return ctx.Err() }

// Pause is [docindex.Pauser.Pause].
func (m *Store) Pause(ctx context.Context, o *docindex.Outcomes) error {
	return embedded.InBatches(ctx, o.Len(), func(from, to int) error {
		m.base.Mu.Lock()
		defer m.base.Mu.Unlock()
		now := m.base.Now()
		for i := from; i < to; i++ {
			out := o.At(i)
			if pause, gap := out.Pause.Milliseconds(), out.Gap.Milliseconds(); pause > 0 || gap > 0 {
				m.base.Sched.PauseHost(docindex.HostOf(out.URL), now+pause, gap, now)
			}
		}
		return nil
	})
}

// pauseLocked records the pause and the gap that an outcome has for its document's host. It ignores
// a pause of less than a millisecond.
func (m *Store) pauseLocked(out *docindex.Outcome, r *record, now int64) {
	if pause, gap := out.Pause.Milliseconds(), out.Gap.Milliseconds(); pause > 0 || gap > 0 {
		m.base.Sched.PauseHostOf(r.queue, m.hostLocked(r), now+pause, gap, now)
	}
}

// Return is [docindex.Returner.Return].
func (m *Store) Return(ctx context.Context, o *docindex.Outcomes) error {
	defer m.base.WakeForRoom()
	return m.each(ctx, o, m.returnLocked)
}

// each calls do with the document of each outcome that has one.
func (m *Store) each(
	ctx context.Context, o *docindex.Outcomes, do func(id uint32, out *docindex.Outcome, now int64),
) error {
	return embedded.InBatches(ctx, o.Len(), func(from, to int) error {
		m.eachOf(o, from, to, do)
		return nil
	})
}

func (m *Store) eachOf(o *docindex.Outcomes, from, to int, do func(id uint32, out *docindex.Outcome, now int64)) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	now := m.base.Now()
	var out docindex.Outcome // one for all, since its address is taken
	for i := from; i < to; i++ {
		out = o.At(i)
		id := m.docs.findID(out.DocID)
		if id == 0 {
			continue
		}
		r := m.docs.records.At(id)
		if m.base.Sched.Exists(r.queue) && out.IsOf(m.docs.url(r)) {
			do(id, &out, now)
		}
	}
}

func (m *Store) endLocked(id uint32, out *docindex.Outcome, now int64) {
	r := m.docs.records.At(id)
	m.pauseLocked(out, r, now)
	// rescheduled since
	if r.state() == docindex.Completed || r.state() == docindex.Scheduled && embedded.DueMS(r.due()) > now &&
		out.Kind.OfAttempt() {
		return
	}
	if b := m.crawls.crawlOf(id); b != nil {
		b.Sent += uint64(out.Attempts)
	}
	if out.Kind == docindex.Stopped || out.Kind == docindex.Expired {
		m.crawls.markPurged(id)
	}
	m.completeLocked(id, now)
	r.setLast(embedded.LastOf(out, now))
	if int(out.Kind) < docindex.Kinds {
		m.outcomes[out.Kind]++
	}
	switch {
	case out.Kind == docindex.OutOfScope: // it may be in scope again
	case out.Again == 0 || m.crawls.isStopped(id):
		m.docs.dropPayload(r)
	default:
		p := docindex.Put{URL: m.docs.url(r), Crawl: []byte(m.base.Sched.Crawl(r.queue)),
			Due: embedded.AgainAt(out.Again, now), Priority: r.priority, Metadata: out.Metadata}
		m.docs.extra(r).packed.Renew(&p)
		m.updateLocked(id, &p, now)
	}
}

func (m *Store) returnLocked(id uint32, _ *docindex.Outcome, now int64) {
	if r := m.docs.records.At(id); r.state() == docindex.InTransit && r.flags&viaFrontier == 0 {
		m.finishLocked(id, docindex.Scheduled, now)
	}
}
