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
	m.backs = append(m.backs, back)
}

// SetSlotGap is [docindex.Hooks.SetSlotGap].
func (m *Store) SetSlotGap(gap time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors.SetSlotGap(gap.Milliseconds())
	m.refreshLocked()
}

// SetHostRules is [docindex.Hooks.SetHostRules].
func (m *Store) SetHostRules(of func(host []byte) docindex.HostRule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors.SetRules(of)
	m.refreshLocked()
}

// refreshLocked looks again at all queues, and lets the lock go now and then.
func (m *Store) refreshLocked() {
	for next := m.doors.RefreshSome(0, m.now()); next != 0; next = m.doors.RefreshSome(next, m.now()) {
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
		id := m.doors.Find(s.Crawl, s.Key)
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
	m.doors.QueuesOf(host, func(id uint32) bool {
		all = append(all, id)
		return true
	})
	return all
}

func (m *Store) bound() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doors.Bound()
}

// recallQueue looks at the documents of a queue of which the slots have any.
func (m *Store) recallQueue(queue uint32) {
	for last, more := uint32(0), true; more; {
		var o docindex.Outcomes
		last, more = m.recallSome(queue, last, &o)
		m.giveBack(&o)
	}
}

func (m *Store) recallSome(queue, last uint32, o *docindex.Outcomes) (_ uint32, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.backs) == 0 || !m.doors.Live(queue) || m.doors.AtSlots(queue) == 0 {
		return 0, false
	}
	if last != 0 && !m.isInLocked(last, queue) {
		last = 0 // forgotten meanwhile: once more from the beginning
	}
	for range hold {
		if last = m.behindLocked(queue, last); last == 0 {
			return 0, false
		}
		m.recallLocked(last, o)
	}
	return last, true
}

// recallLocked adds a document that the slots have.
func (m *Store) recallLocked(id uint32, o *docindex.Outcomes) {
	if r := m.docs.records.At(id); len(m.backs) > 0 && r.state() == docindex.InTransit && r.flags&viaCall == 0 {
		o.Add(docindex.Outcome{DocID: m.docs.docID(nil, id), URL: m.docs.url(r)})
	}
}

func (m *Store) giveBack(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	m.mu.Lock()
	backs := m.backs
	m.mu.Unlock()
	for _, back := range backs {
		back(o)
	}
}
