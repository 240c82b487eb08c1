package memory

import (
	"context"
	"time"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Delete is [docindex.Frontier.Delete]. It removes the queues at once, and frees the memory of
// their documents in portions.
func (m *Store) Delete(ctx context.Context, s docindex.Scope) (deleted int, err error) {
	return m.base.EachQueue(ctx, s, func(id uint32) (int, error) { return m.deleteQueue(id, s), nil })
}

// deleteQueue removes a queue of s.
func (m *Store) deleteQueue(id uint32, s docindex.Scope) int {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if !m.base.Sched.IsIn(id, s.Crawl, s.Key) {
		return 0
	}
	n := m.base.Sched.QueueTotal(id)
	m.base.Sched.Drop(id)
	m.forgetInSlotsLocked(id)
	for more := true; more; {
		var o docindex.Outcomes
		more = m.freeSomeLocked(id, &o)
		m.base.Mu.Unlock()
		m.base.Recall(&o)
		m.base.Mu.Lock()
	}
	now := m.base.Now()
	m.orders[id] = queueOrder{}
	m.branches.Drop(id)
	m.base.Sched.Free(id, now)
	return int(n.URLs[docindex.Scheduled] + n.URLs[docindex.InTransit] + n.URLs[docindex.Completed])
}

// freeSomeLocked removes documents of a dropped queue. more reports whether some are left.
func (m *Store) freeSomeLocked(queue uint32, o *docindex.Outcomes) (more bool) {
	c := &m.orders[queue]
	now := m.base.Now()
	for range embedded.LockBatch {
		id := c.first
		if id == 0 {
			return false
		}
		r := m.docs.records.At(id)
		c.first = r.sibling
		if r.state() == docindex.InTransit {
			m.recallLocked(id, o)
			m.orphanLocked(id, now)
			m.finishLocked(id, docindex.Completed, now)
		}
		m.crawls.leave(id, m.docs.records.At(id).priority)
		m.docs.drop(id)
	}
	return true
}

// orphanLocked blocks the host of a document that is being removed while a URL Frontier client has
// it.
func (m *Store) orphanLocked(id uint32, now int64) {
	r := m.docs.records.At(id)
	if r.state() == docindex.InTransit && r.flags&viaFrontier != 0 && m.base.Leases.Has(id) {
		m.base.Sched.Orphan(r.queue, m.hostLocked(r), m.docs.url(r), int64(m.base.Leases.Due(id)), now)
	}
}

// Purge is [docindex.Frontier.Purge].
func (m *Store) Purge(ctx context.Context, s docindex.Scope, before time.Time) (purged int, err error) {
	return m.base.EachQueue(ctx, s, func(id uint32) (int, error) { return m.purgeQueue(ctx, id, s, before) })
}

// purgeQueue removes the documents of a queue of s that are older than before. They need not be in
// order of age, since clients can give dates.
func (m *Store) purgeQueue(
	ctx context.Context, queue uint32, s docindex.Scope, before time.Time,
) (purged int, err error) {
	kept := uint32(0)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return purged, err
		}
		var n int
		var o docindex.Outcomes
		n, kept, more = m.purgeSome(queue, s, kept, before.Unix(), &o)
		m.base.Recall(&o)
		purged += n
	}
	return purged, nil
}

// purgeSome removes documents among the next ones of a queue after kept, or among the first ones if
// kept is 0. last is the last document that it has kept.
func (m *Store) purgeSome(
	queue uint32, s docindex.Scope, kept uint32, before int64, o *docindex.Outcomes,
) (purged int, last uint32, more bool) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if !m.base.Sched.IsIn(queue, s.Crawl, s.Key) {
		return 0, 0, false
	}
	if kept != 0 && !m.belongsLocked(kept, queue) {
		kept = 0 // it was removed meanwhile: begin again
	}
	now := m.base.Now()
	for range embedded.LockBatch {
		id := m.afterLocked(queue, kept)
		if id == 0 {
			return purged, 0, false
		}
		if int64(m.docs.records.At(id).created) >= before {
			kept = id
			continue
		}
		m.recallLocked(id, o)
		m.orphanLocked(id, now)
		m.completeLocked(id, now)
		m.unchainLocked(queue, kept, id)
		m.base.Sched.Uncount(queue, queuesched.Completed)
		m.crawls.leave(id, m.docs.records.At(id).priority)
		m.docs.drop(id)
		m.base.Sched.Refresh(queue, now)
		purged++
	}
	return purged, kept, true
}

// afterLocked returns the document that arrived in a queue after kept, or the first one if that is
// 0.
func (m *Store) afterLocked(queue, kept uint32) uint32 {
	if kept == 0 {
		return m.orders[queue].first
	}
	return m.docs.records.At(kept).sibling
}

// unchainLocked removes a document from its queue's list by arrival, where it follows kept.
func (m *Store) unchainLocked(queue, kept, id uint32) {
	c := &m.orders[queue]
	c.removed++
	next := m.docs.records.At(id).sibling
	if kept == 0 {
		c.first = next
	} else {
		m.docs.records.At(kept).sibling = next
	}
	if c.last == id {
		c.last = kept
	}
}
