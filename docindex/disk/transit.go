package disk

import (
	"encoding/binary"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/docindex/internal/queuesched"
)

// transit is a document that was handed out. Its body stays at its place in the order.
type transit struct {
	name       name
	queue      uint32 // number in the scheduler
	created    uint32
	member     uint32 // its partition; 0: it is of no crawl
	at         place
	consumer   queuesched.Consumer
	packed     bool   // its body has more than metadata
	idLen      uint8  // of its DOC_ID
	leaseBatch uint64 // the row with its lease; 0: there is none
	id         string // the DOC_ID that a client gave, if any, and then doc.lasting
	host       string // the host; "": the queue's key is the host
}

// place returns the state of a document in transit in the counts of its crawl.
func (t *transit) place() crawlstats.State {
	if t.consumer == queuesched.SlotConsumer {
		return crawlstats.InSlots
	}
	return crawlstats.InClients
}

func (n *name) hash32() uint32 {
	return binary.BigEndian.Uint32(n.hash[:]) ^ n.queue*0x9E3779B1
}

// dispatchLocked counts a scheduled document as handed out, with a lease until the given moment; 0:
// without one. It returns the number of the transit.
func (s *Store) dispatchLocked(t transit, until, now int64) (id uint32) {
	id = s.transits.add(t)
	s.base.Sched.Move(t.queue, queuesched.Scheduled, queuesched.InTransit)
	s.crawls.shift(t.member, t.at.priority(), crawlstats.Scheduled, t.place(), now)
	if until > 0 {
		s.base.Leases.Set(id, time.Duration(until))
	}
	pages := uint32(1)
	if branches := s.queues.branches.Of(t.queue); branches != nil && t.at.branch() != 0 {
		pages = branches.Pages(t.at.branch())
	}
	s.base.Sched.CountOut(t.queue, []byte(t.host), t.consumer, pages, now)
	return id
}

// finishLocked ends the transit of a document. With Scheduled the document is scheduled again at its
// place; with Completed the caller writes its row.
func (s *Store) finishLocked(id uint32, to docindex.State, now int64) {
	s.base.Leases.Remove(id)
	t, last := s.transits.remove(id)
	if last {
		s.txn.endedBatches = append(s.txn.endedBatches, t.leaseBatch)
	}
	if to == docindex.Scheduled {
		s.crawls.shift(t.member, t.at.priority(), t.place(), crawlstats.Scheduled, now)
		if t.member != 0 && s.crawls.partitions[t.member].purged {
			s.crawls.noteReturned(t.member, t.name)
		}
	} else {
		s.crawls.shift(t.member, t.at.priority(), t.place(), crawlstats.Completed, now)
	}
	if !s.base.Sched.Exists(t.queue) {
		s.base.Sched.CountBack(t.queue, []byte(t.host), t.consumer, now)
		return
	}
	if to == docindex.Scheduled {
		s.base.Sched.Move(t.queue, queuesched.InTransit, queuesched.Scheduled)
		s.queues.enqueue(t.queue, &t.at, now)
	} else {
		s.queues.move(t.queue, queuesched.InTransit, queuesched.Completed)
		if t.consumer != queuesched.FrontierConsumer {
			s.queues.markDirty(t.queue).served[queuesched.SlotConsumer] = true
		}
	}
	s.base.Sched.CountBack(t.queue, []byte(t.host), t.consumer, now)
}
