package disk

import (
	"maps"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// OnRecall is [docindex.Hooks.OnRecall].
func (s *Store) OnRecall(back func(*docindex.Outcomes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recalls = append(s.recalls, back)
}

// SetSlotGap is [docindex.Hooks.SetSlotGap].
func (s *Store) SetSlotGap(gap time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched.SetSlotGap(gap.Milliseconds())
	s.refreshLocked()
}

// SetHostRules is [docindex.Hooks.SetHostRules].
func (s *Store) SetHostRules(of func(host []byte) docindex.HostRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sched.SetRules(of)
	s.refreshLocked()
}

// refreshLocked looks again at all queues, and lets the lock go now and then.
func (s *Store) refreshLocked() {
	for next := s.sched.RefreshSome(0, s.now()); next != 0; next = s.sched.RefreshSome(next, s.now()) {
		s.mu.Unlock()
		s.mu.Lock()
	}
}

// recall has the slots give back what they have of a queue, of a host's queues, or of all where there is no key.
func (s *Store) recall(set docindex.Setting) {
	s.mu.Lock()
	of := map[uint32]bool{}
	switch {
	case set.Host:
		s.sched.QueuesOf(set.Key, func(id uint32) bool {
			of[id] = s.sched.AtSlots(id) > 0
			return true
		})
	case len(set.Key) > 0:
		if id := s.sched.Find(set.Crawl, set.Key); id != 0 {
			of[id] = s.sched.AtSlots(id) > 0
		}
	}
	maps.DeleteFunc(of, func(_ uint32, has bool) bool { return !has })
	var o docindex.Outcomes
	if len(s.recalls) > 0 && (len(set.Key) == 0 || len(of) > 0) {
		for id := uint32(1); int(id) < s.transits.Cap(); id++ {
			if t := s.transits.At(id); t.queue != 0 && (len(set.Key) == 0 || of[t.queue]) {
				s.recallLocked(t, &o)
			}
		}
	}
	s.mu.Unlock()
	s.callRecalls(&o)
}

// recallLocked adds a document if the slots have it.
func (s *Store) recallLocked(t *transit, o *docindex.Outcomes) {
	if len(s.recalls) == 0 && s.crawls.onDelete == nil || t.consumer == queuesched.FrontierConsumer {
		return
	}
	id := []byte(t.id)
	if len(id) == 0 {
		id = s.namer.docID(nil, &t.name)
	}
	o.Add(docindex.Outcome{DocID: id})
}

// callRecalls must not be called with the lock held.
func (s *Store) callRecalls(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	s.mu.Lock()
	backs := s.recalls
	s.mu.Unlock()
	for _, back := range backs {
		back(o)
	}
}
