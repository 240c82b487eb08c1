package disk

import (
	"maps"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
)

// recall recalls the documents that the slots have of a queue, of the queues of a host, or of all
// queues if there is no key.
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
	some := len(s.base.Recalls) > 0 && (len(set.Key) == 0 || len(of) > 0)
	s.base.Mu.Unlock()
	for from := uint32(1); some && from != 0; {
		from = s.recallSome(from, func(queue uint32) bool { return len(set.Key) == 0 || of[queue] })
	}
}

// recallSome recalls the documents that the slots have of queues, from a number of a transit on. It
// returns the number to continue with, or 0.
func (s *Store) recallSome(from uint32, of func(queue uint32) bool) (next uint32) {
	var o docindex.Outcomes
	s.base.Mu.Lock()
	end := min(from+embedded.LockBatch, s.transits.bound())
	for id := from; id < end; id++ {
		if t := s.transits.at(id); t.queue != 0 && of(t.queue) {
			s.recallLocked(t, &o)
		}
	}
	if next = end; end == s.transits.bound() {
		next = 0
	}
	s.base.Mu.Unlock()
	s.base.Recall(&o)
	return next
}

// recallLocked adds a document to o if the slots have it and somebody takes recalls.
func (s *Store) recallLocked(t *transit, o *docindex.Outcomes) {
	if len(s.base.Recalls) == 0 && s.base.Forget == nil || t.consumer == queuesched.FrontierConsumer {
		return
	}
	o.Add(docindex.Outcome{DocID: s.docs.docIDOf(t)})
}
