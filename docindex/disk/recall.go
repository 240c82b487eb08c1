package disk

import (
	"maps"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// recall recalls what the slots have of a queue, of the queues of a host, or of all queues if there
// is no key.
func (s *Store) recall(set docindex.Setting) {
	s.base.Mu.Lock()
	of := map[uint32]bool{}
	switch {
	case set.Host:
		s.base.Sched.QueuesOf(set.Key, func(id uint32) bool {
			of[id] = s.base.Sched.AtSlots(id) > 0
			return true
		})
	case len(set.Key) > 0:
		if id := s.base.Sched.Find(set.Crawl, set.Key); id != 0 {
			of[id] = s.base.Sched.AtSlots(id) > 0
		}
	}
	maps.DeleteFunc(of, func(_ uint32, has bool) bool { return !has })
	var o docindex.Outcomes
	if len(s.base.Recalls) > 0 && (len(set.Key) == 0 || len(of) > 0) {
		for id := uint32(1); id < s.transits.bound(); id++ {
			if t := s.transits.at(id); t.queue != 0 && (len(set.Key) == 0 || of[t.queue]) {
				s.recallLocked(t, &o)
			}
		}
	}
	s.base.Mu.Unlock()
	s.base.Recall(&o)
}

// recallLocked adds a document if the slots have it.
func (s *Store) recallLocked(t *transit, o *docindex.Outcomes) {
	if len(s.base.Recalls) == 0 && s.base.Forget == nil || t.consumer == queuesched.FrontierConsumer {
		return
	}
	o.Add(docindex.Outcome{DocID: s.docs.docIDOf(t)})
}
