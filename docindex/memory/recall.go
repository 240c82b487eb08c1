package memory

import (
	"context"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
)

// recall recalls the documents that the slots have of a queue, of the queues of a host, or of all
// queues if there is no key.
func (m *Store) recall(ctx context.Context, s docindex.Setting) error {
	if s.Host {
		for _, id := range m.queuesOf(s.Key) {
			m.recallQueue(id)
		}
		return ctx.Err()
	}
	if len(s.Key) > 0 {
		m.recallQueue(m.base.Find(s.Scope))
		return nil
	}
	for id := uint32(1); id < m.bound(); id++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.recallQueue(id)
	}
	return nil
}

func (m *Store) queuesOf(host []byte) (all []uint32) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	m.base.Sched.QueuesOf(host, func(id uint32) bool {
		all = append(all, id)
		return true
	})
	return all
}

func (m *Store) bound() uint32 {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	return m.base.Sched.Bound()
}

// recallQueue recalls the documents of a queue that the slots have.
func (m *Store) recallQueue(queue uint32) {
	for last, more := uint32(0), true; more; {
		var o docindex.Outcomes
		last, more = m.recallSome(queue, last, &o)
		m.base.Recall(&o)
	}
}

func (m *Store) recallSome(queue, last uint32, o *docindex.Outcomes) (_ uint32, more bool) {
	m.base.Mu.Lock()
	defer m.base.Mu.Unlock()
	if len(m.base.Recalls) == 0 || !m.base.Sched.Exists(queue) || m.base.Sched.AtSlots(queue) == 0 {
		return 0, false
	}
	if last != 0 && !m.belongsLocked(last, queue) {
		last = 0 // it was removed meanwhile: begin again
	}
	for range embedded.LockBatch {
		if last = m.afterLocked(queue, last); last == 0 {
			return 0, false
		}
		m.recallLocked(last, o)
	}
	return last, true
}

// recallLocked adds a document to o if the slots have it and somebody takes recalls.
func (m *Store) recallLocked(id uint32, o *docindex.Outcomes) {
	if r := m.docs.records.At(id); len(m.base.Recalls) > 0 && r.state() == docindex.InTransit &&
		r.flags&viaFrontier == 0 {
		o.Add(docindex.Outcome{DocID: m.docs.docID(nil, id), URL: m.docs.url(r)})
	}
}
