package memory

import (
	"context"
	"time"

	"urlserver/docindex"
)

// OnRecall is [docindex.Hooks.OnRecall].
func (m *Store) OnRecall(back func(*docindex.Outcomes)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recalls = append(m.recalls, back)
}

// SetSlotGap is [docindex.Hooks.SetSlotGap].
func (m *Store) SetSlotGap(gap time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sched.SetSlotGap(gap.Milliseconds())
	m.refreshLocked()
}

// SetHostRules is [docindex.Hooks.SetHostRules].
func (m *Store) SetHostRules(of func(host []byte) docindex.HostRule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sched.SetRules(of)
	m.refreshLocked()
}

// refreshLocked looks again at all queues, and lets the lock go now and then.
func (m *Store) refreshLocked() {
	for next := m.sched.RefreshSome(0, m.now()); next != 0; next = m.sched.RefreshSome(next, m.now()) {
		m.mu.Unlock()
		m.mu.Lock()
	}
}

// recall has the slots give back what they have of a queue, of a host's queues, or of all where there is no key.
func (m *Store) recall(ctx context.Context, s docindex.Setting) error {
	if s.Host {
		for _, id := range m.queuesOf(s.Key) {
			m.recallQueue(id)
		}
		return ctx.Err()
	}
	if len(s.Key) > 0 {
		m.mu.Lock()
		id := m.sched.Find(s.Crawl, s.Key)
		m.mu.Unlock()
		m.recallQueue(id)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sched.QueuesOf(host, func(id uint32) bool {
		all = append(all, id)
		return true
	})
	return all
}

func (m *Store) bound() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sched.Bound()
}

// recallQueue looks at the documents of a queue of which the slots have any.
func (m *Store) recallQueue(queue uint32) {
	for last, more := uint32(0), true; more; {
		var o docindex.Outcomes
		last, more = m.recallSome(queue, last, &o)
		m.callRecalls(&o)
	}
}

func (m *Store) recallSome(queue, last uint32, o *docindex.Outcomes) (_ uint32, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.recalls) == 0 || !m.sched.Exists(queue) || m.sched.AtSlots(queue) == 0 {
		return 0, false
	}
	if last != 0 && !m.belongsLocked(last, queue) {
		last = 0 // forgotten meanwhile: once more from the beginning
	}
	for range lockBatch {
		if last = m.afterLocked(queue, last); last == 0 {
			return 0, false
		}
		m.recallLocked(last, o)
	}
	return last, true
}

// recallLocked adds a document that the slots have.
func (m *Store) recallLocked(id uint32, o *docindex.Outcomes) {
	if r := m.docs.records.At(id); len(m.recalls) > 0 && r.state() == docindex.InTransit && r.flags&viaFrontier == 0 {
		o.Add(docindex.Outcome{DocID: m.docs.docID(nil, id), URL: m.docs.url(r)})
	}
}

func (m *Store) callRecalls(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	m.mu.Lock()
	backs := m.recalls
	m.mu.Unlock()
	for _, back := range backs {
		back(o)
	}
}
