package memory

import (
	"time"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Only these functions change the state of a document. They update counts, queues and leases, too.

// scheduleLocked schedules a completed document.
func (m *Store) scheduleLocked(id uint32, now int64) {
	r := m.docs.records.At(id)
	m.base.Sched.Move(r.queue, queuesched.Completed, queuesched.Scheduled)
	m.enqueueLocked(id, r, now)
	m.base.Sched.Refresh(r.queue, now) // its limit may no longer be reached
}

// enqueueLocked puts a document that already counts as scheduled into its queue.
func (m *Store) enqueueLocked(id uint32, r *record, now int64) {
	r.setState(docindex.Scheduled)
	m.trackCrawlLocked(id, r)
	m.base.Sched.CountLater(r.queue, embedded.DueMS(r.due()), now, 1)
	if m.pushLocked(id, r) {
		m.setDueLocked(r.queue, now)
	}
}

// dispatchLocked hands out a scheduled document to a consumer until its lease ends; 0: there is no
// lease. The caller sets the queue's due time.
func (m *Store) dispatchLocked(id uint32, consumer queuesched.Consumer, until, now int64) {
	r := m.docs.records.At(id)
	m.pullLocked(id, r)
	pages := uint32(1)
	if r.flags&inBranch != 0 {
		t, no := m.branchLocked(r)
		t.Took(no)
		pages = t.Pages(no)
	}
	m.base.Sched.Move(r.queue, queuesched.Scheduled, queuesched.InTransit)
	r.setState(docindex.InTransit)
	r.flags &^= viaFrontier | viaRemote
	switch consumer {
	case queuesched.FrontierConsumer:
		r.flags |= viaFrontier
	case queuesched.RemoteConsumer:
		r.flags |= viaRemote
	}
	m.trackCrawlLocked(id, r)
	if until > 0 {
		m.base.Leases.Set(id, time.Duration(until))
	}
	m.base.Sched.CountOut(r.queue, m.hostLocked(r), consumer, pages, now)
}

// finishLocked ends the transit of a document: it is scheduled as before, or completed.
func (m *Store) finishLocked(id uint32, to docindex.State, now int64) {
	r := m.docs.records.At(id)
	if to == docindex.Scheduled && m.crawls.isStopped(id) {
		to = docindex.Completed // it would never be handed out again
		m.countPurgedLocked(id, now)
	}
	m.base.Leases.Remove(id)
	m.base.Sched.Move(r.queue, queuesched.InTransit, queuesched.State(to))
	r.setState(to)
	if to == docindex.Scheduled {
		m.enqueueLocked(id, r, now)
	} else {
		m.trackCrawlLocked(id, r)
	}
	m.base.Sched.CountBack(r.queue, m.hostLocked(r), r.consumer(), now)
}

// consumer returns the consumer that has a document in transit.
func (r *record) consumer() queuesched.Consumer {
	switch {
	case r.flags&viaFrontier != 0:
		return queuesched.FrontierConsumer
	case r.flags&viaRemote != 0:
		return queuesched.RemoteConsumer
	}
	return queuesched.SlotConsumer
}

// completeLocked completes a document, which may be completed already.
func (m *Store) completeLocked(id uint32, now int64) {
	r := m.docs.records.At(id)
	switch r.state() {
	case docindex.InTransit:
		m.finishLocked(id, docindex.Completed, now)
	case docindex.Scheduled:
		m.pullLocked(id, r)
		m.base.Sched.CountLater(r.queue, embedded.DueMS(r.due()), now, -1)
		m.base.Sched.Move(r.queue, queuesched.Scheduled, queuesched.Completed)
		r.setState(docindex.Completed)
		m.trackCrawlLocked(id, r)
		m.setDueLocked(r.queue, now)
		m.base.Sched.Refresh(r.queue, now) // its limit may be reached
	}
}

// setDueLocked tells the scheduler when a queue's first document is due.
func (m *Store) setDueLocked(queue uint32, now int64) {
	m.base.Sched.SetDue(queue, m.dueLocked(queue), now)
}

func (m *Store) dueLocked(queue uint32) int64 {
	root, due := m.orders[queue].root, int64(queuesched.Never)
	if root != 0 {
		due = embedded.DueMS(m.docs.records.At(root).due())
	}
	if due > 0 {
		if t := m.branches.Of(queue); t != nil && t.Some() {
			return 0
		}
	}
	return due
}

// hostLocked returns the host of a document if the key of its queue may not be its host.
func (m *Store) hostLocked(r *record) []byte {
	if !m.base.Sched.AnyHost(r.queue) {
		return nil
	}
	return docindex.HostOf(m.docs.url(r))
}

// pickLocked finds the first document of a queue that is due and may be handed out to a consumer.
// It ends documents of stopped crawls that it meets, up to m.purges.
func (m *Store) pickLocked(queue uint32, consumer queuesched.Consumer, now int64) uint32 {
	for {
		id := m.firstLocked(queue, consumer, now)
		if id == 0 || !m.crawls.isStopped(id) {
			return id
		}
		if m.purges == 0 {
			return 0
		}
		m.purges--
		m.purgeLocked(id, now)
	}
}

// firstLocked is like pickLocked, but also returns documents of stopped crawls. It skips documents
// on hosts that may not be requested, up to a bound.
func (m *Store) firstLocked(queue uint32, consumer queuesched.Consumer, now int64) uint32 {
	plain := m.availableLocked(queue, &m.orders[queue].order, consumer, now)
	return m.inTurnLocked(queue, plain, consumer, now)
}

// availableLocked is like firstLocked, for one of the orders of a queue.
func (m *Store) availableLocked(queue uint32, c *order, consumer queuesched.Consumer, now int64) uint32 {
	if !m.base.Sched.AnyHost(queue) {
		if c.root == 0 || embedded.DueMS(m.docs.records.At(c.root).due()) > now {
			return 0
		}
		return c.root
	}
	var passed [maxSkipped]uint32
	n, found := 0, uint32(0)
	for c.root != 0 && n < maxSkipped && embedded.DueMS(m.docs.records.At(c.root).due()) <= now {
		id := c.root
		if m.base.Sched.HostAvailable(m.hostLocked(m.docs.records.At(id)), consumer, now) {
			found = id
			break
		}
		m.docs.pull(c, id)
		passed[n] = id
		n++
	}
	for _, id := range passed[:n] {
		m.docs.push(c, id)
	}
	return found
}

// maxSkipped is how many documents a call skips in a queue with several hosts before another queue
// has its turn.
const maxSkipped = 64
