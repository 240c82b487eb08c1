package disk

import (
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/doors"
)

// Recall is [docindex.Store.Recall].
func (s *Store) Recall(back func(*docindex.Outcomes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backs = append(s.backs, back)
}

// Pace is [docindex.Store.Pace].
func (s *Store) Pace(gap time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doors.SetSlotGap(gap.Milliseconds())
	s.refreshLocked()
}

// refreshLocked looks again at all queues, and lets the lock go now and then.
func (s *Store) refreshLocked() {
	for next := s.doors.RefreshSome(0, s.now()); next != 0; next = s.doors.RefreshSome(next, s.now()) {
		s.mu.Unlock()
		s.mu.Lock()
	}
}

// recall has the slots give back what they have of a queue, or of all where there is no key.
func (s *Store) recall(scope docindex.Scope) {
	s.mu.Lock()
	queue := uint32(0)
	if len(scope.Key) > 0 {
		queue = s.doors.Find(scope.Crawl, scope.Key)
	}
	var o docindex.Outcomes
	if len(s.backs) > 0 && (len(scope.Key) == 0 || queue != 0 && s.doors.AtSlots(queue) > 0) {
		for id := uint32(1); int(id) < s.transits.Cap(); id++ {
			if t := s.transits.At(id); t.queue != 0 && (queue == 0 || t.queue == queue) {
				s.recallLocked(t, &o)
			}
		}
	}
	s.mu.Unlock()
	s.giveBack(&o)
}

// recallLocked adds a document if the slots have it.
func (s *Store) recallLocked(t *transit, o *docindex.Outcomes) {
	if len(s.backs) == 0 && s.crawls.onDelete == nil || t.door == doors.Calls {
		return
	}
	id := []byte(t.id)
	if len(id) == 0 {
		id = s.secret.docID(nil, &t.name)
	}
	o.Add(docindex.Outcome{DocID: id})
}

// giveBack must not be called with the lock held.
func (s *Store) giveBack(o *docindex.Outcomes) {
	if o.Len() == 0 {
		return
	}
	s.mu.Lock()
	backs := s.backs
	s.mu.Unlock()
	for _, back := range backs {
		back(o)
	}
}
