package memory

import (
	"time"

	"urlserver/docindex/internal/queuesched"

	"urlserver/docindex"
)

// Documents change their state by these alone, so that counts, queues and leases go along.

// scheduleLocked schedules a document that is completed.
func (m *Store) scheduleLocked(id uint32, now int64) {
	r := m.docs.records.At(id)
	m.doors.Move(r.queue, queuesched.Completed, queuesched.Scheduled)
	m.lineUpLocked(id, r, now)
	m.doors.Refresh(r.queue, now) // its limit may no longer be reached
}

// lineUpLocked puts a document, which is counted as scheduled already, into its queue.
func (m *Store) lineUpLocked(id uint32, r *record, now int64) {
	r.setState(docindex.Scheduled)
	m.trackLocked(id, r)
	c := &m.chains[r.queue]
	m.docs.push(c, id)
	if c.root == id {
		m.doors.SetDue(r.queue, dueMS(r.due), now)
	}
}

// dueMS is a due time in ms.
func dueMS(seconds int64) int64 {
	if seconds > queuesched.Never/1000-1 {
		return queuesched.Never - 1
	}
	return seconds * 1000
}

// departLocked sends out a scheduled document, through a door, until its lease ends; 0: until there is news of it.
// The queue's due time is left to the caller.
func (m *Store) departLocked(id uint32, door queuesched.Door, until, now int64) {
	r := m.docs.records.At(id)
	m.docs.pull(&m.chains[r.queue], id)
	m.doors.Move(r.queue, queuesched.Scheduled, queuesched.InTransit)
	r.setState(docindex.InTransit)
	r.flags &^= viaCall | isLent
	switch door {
	case queuesched.Calls:
		r.flags |= viaCall
	case queuesched.Lent:
		r.flags |= isLent
	}
	m.trackLocked(id, r)
	if until > 0 {
		m.leases.Set(id, time.Duration(until))
	}
	m.doors.Out(r.queue, m.hostLocked(r), door, now)
}

// landLocked ends a document's transit: it is Scheduled as before, or Completed.
func (m *Store) landLocked(id uint32, to docindex.State, now int64) {
	r := m.docs.records.At(id)
	if to == docindex.Scheduled && m.crawls.purging(id) {
		to = docindex.Completed // it would never go out again
		m.strayLocked(id)
	}
	m.leases.Remove(id)
	m.doors.Move(r.queue, queuesched.InTransit, queuesched.State(to))
	r.setState(to)
	if to == docindex.Scheduled {
		m.lineUpLocked(id, r, now)
	} else {
		m.trackLocked(id, r)
	}
	m.doors.Back(r.queue, m.hostLocked(r), r.door(), now)
}

// door is where a document in transit went out.
func (r *record) door() queuesched.Door {
	switch {
	case r.flags&viaCall != 0:
		return queuesched.Calls
	case r.flags&isLent != 0:
		return queuesched.Lent
	}
	return queuesched.Slots
}

// completeLocked completes a document, which may be so already.
func (m *Store) completeLocked(id uint32, now int64) {
	r := m.docs.records.At(id)
	switch r.state() {
	case docindex.InTransit:
		m.landLocked(id, docindex.Completed, now)
	case docindex.Scheduled:
		m.docs.pull(&m.chains[r.queue], id)
		m.doors.Move(r.queue, queuesched.Scheduled, queuesched.Completed)
		r.setState(docindex.Completed)
		m.trackLocked(id, r)
		m.setDueLocked(r.queue, now)
		m.doors.Refresh(r.queue, now) // its limit may be reached
	}
}

// setDueLocked tells when a queue's first document is due.
func (m *Store) setDueLocked(queue uint32, now int64) {
	m.doors.SetDue(queue, m.dueLocked(queue), now)
}

func (m *Store) dueLocked(queue uint32) int64 {
	root := m.chains[queue].root
	if root == 0 {
		return queuesched.Never
	}
	return dueMS(m.docs.records.At(root).due)
}

// hostLocked is the host of a document, where its queue does not tell.
func (m *Store) hostLocked(r *record) []byte {
	if !m.doors.AnyHost(r.queue) {
		return nil
	}
	return docindex.HostOf(m.docs.url(r))
}

// pickLocked finds the first document of a queue that is due and may go out at a door. Those of crawls that are being
// purged end here, as many as m.purges allows.
func (m *Store) pickLocked(queue uint32, door queuesched.Door, now int64) uint32 {
	for {
		id := m.firstLocked(queue, door, now)
		if id == 0 || !m.crawls.purging(id) {
			return id
		}
		if m.purges == 0 {
			return 0
		}
		m.purges--
		m.purgeLocked(id, now)
	}
}

// firstLocked is pickLocked without a look at crawls. Documents on hosts that are worked on elsewhere are passed over, up
// to a bound.
func (m *Store) firstLocked(queue uint32, door queuesched.Door, now int64) uint32 {
	c := &m.chains[queue]
	if !m.doors.AnyHost(queue) {
		if c.root == 0 || dueMS(m.docs.records.At(c.root).due) > now {
			return 0
		}
		return c.root
	}
	var passed [maxPassed]uint32
	n, found := 0, uint32(0)
	for c.root != 0 && n < maxPassed && dueMS(m.docs.records.At(c.root).due) <= now {
		id := c.root
		if m.doors.HostFree(m.hostLocked(m.docs.records.At(id)), door, now) {
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

// maxPassed is how many documents are passed over in a queue of many hosts before that is left alone.
const maxPassed = 64
