package memory

import (
	"context"
	"fmt"
	"time"

	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Candidates is [docindex.Source.Candidates]. What it hands out stays in transit until its outcome.
func (m *Store) Candidates(ctx context.Context, max int, reject []string, b *docindex.Batch) error {
	return m.handOut(ctx, max, reject, 0, b)
}

// Lease is [docindex.Leaser.Lease].
func (m *Store) Lease(ctx context.Context, max int, reject []string, lease time.Duration, b *docindex.Batch) error {
	if lease <= 0 {
		return fmt.Errorf("lease of %v: it has to be longer than nothing", lease)
	}
	return m.handOut(ctx, max, reject, lease, b)
}

// handOut hands out with a lease, or for good where that is 0. Rejects are looked up once a hold, so a
// hold is no shorter than their list.
func (m *Store) handOut(ctx context.Context, limit int, reject []string, lease time.Duration, b *docindex.Batch) error {
	for limit > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		ask := min(limit, max(lockBatch, len(reject)))
		got, more := m.handOutSome(ask, reject, lease, b)
		limit -= got
		if got < ask && !more {
			return nil
		}
	}
	return nil
}

func (m *Store) handOutSome(limit int, reject []string, lease time.Duration, b *docindex.Batch) (got int, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	more = m.catchUpLocked(now)
	consumer := queuesched.SlotConsumer
	if lease > 0 {
		consumer = queuesched.RemoteConsumer
	}
	m.purges = lockBatch
	m.sched.BeginRound(reject)
	for got < limit {
		queue := m.sched.NextForSlots(consumer)
		if queue == 0 {
			break
		}
		id := m.pickLocked(queue, consumer, now)
		if id == 0 {
			m.sched.Skip(queue)
			continue
		}
		m.toSlotsLocked(id, consumer, lease, now, b)
		got++
	}
	m.sched.EndRound(now)
	return got, more
}

func (m *Store) toSlotsLocked(id uint32, consumer queuesched.Consumer, lease time.Duration, now int64, b *docindex.Batch) {
	until := int64(0)
	if lease > 0 {
		until = leaseEnd(now, lease)
	}
	r := m.docs.records.At(id)
	m.dispatchLocked(id, consumer, until, now)
	m.sched.EndTurn(r.queue, m.dueLocked(r.queue), now)
	var name [20]byte // a uint64 in decimal
	b.AddFor(m.docs.docID(name[:0], id), m.docs.url(r), r.priority, docindex.SpiderOf(m.docs.extra(r).metadata), m.sched.Crawl(r.queue))
}

// leaseEnd is when a lease that begins now has run out: whole ms, no sooner than it says.
func leaseEnd(now int64, lease time.Duration) int64 {
	return now + int64((lease-1)/time.Millisecond) + 1
}

// Outcomes is [docindex.Source.Outcomes] as a [docindex.Store] has it. One that tells how a try ended changes nothing where the
// document is scheduled for later: there was news of it since it was handed out.
func (m *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	return m.each(ctx, o, m.endLocked)
}

// Return is [docindex.Returner.Return].
func (m *Store) Return(ctx context.Context, o *docindex.Outcomes) error {
	return m.each(ctx, o, m.returnLocked)
}

// each calls back with the document of each outcome that has one.
func (m *Store) each(ctx context.Context, o *docindex.Outcomes, do func(id uint32, out *docindex.Outcome, now int64)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := 0; i < o.Len(); i += lockBatch {
		m.eachOf(o, i, min(i+lockBatch, o.Len()), do)
	}
	return nil
}

func (m *Store) eachOf(o *docindex.Outcomes, from, to int, do func(id uint32, out *docindex.Outcome, now int64)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var out docindex.Outcome // one for all, since its address is taken
	for i := from; i < to; i++ {
		out = o.At(i)
		id := m.docs.findID(out.DocID)
		if id == 0 {
			continue
		}
		r := m.docs.records.At(id)
		if m.sched.Exists(r.queue) && out.IsOf(m.docs.url(r)) {
			do(id, &out, now)
		}
	}
}

func (m *Store) endLocked(id uint32, out *docindex.Outcome, now int64) {
	r := m.docs.records.At(id)
	if out.Pause > 0 || out.Gap > 0 {
		m.sched.PauseHost(docindex.HostOf(m.docs.url(r)), now+out.Pause.Milliseconds(), out.Gap.Milliseconds(), now)
	}
	if r.state() == docindex.Completed || r.state() == docindex.Scheduled && dueMS(r.due) > now && out.Kind.OfAttempt() { // rescheduled since
		return
	}
	if b := m.crawls.crawlOf(id); b != nil {
		b.Sent += uint64(out.Attempts)
	}
	if out.Kind == docindex.Stopped || out.Kind == docindex.Expired {
		m.crawls.markPurged(id)
	}
	m.completeLocked(id, now)
	if int(out.Kind) < docindex.Kinds {
		m.outcomes[out.Kind]++
	}
	if out.Again > 0 && !m.crawls.isStopped(id) {
		p := docindex.Put{URL: m.docs.url(r), Crawl: []byte(m.sched.Crawl(r.queue)), Due: out.Again, Priority: r.priority, Metadata: out.Metadata}
		m.keepOwnerLocked(id, &p)
		m.updateLocked(id, &p, now)
	}
}

func (m *Store) returnLocked(id uint32, _ *docindex.Outcome, now int64) {
	if r := m.docs.records.At(id); r.state() == docindex.InTransit && r.flags&viaFrontier == 0 {
		m.finishLocked(id, docindex.Scheduled, now)
	}
}
