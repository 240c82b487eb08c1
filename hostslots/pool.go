package hostslots

import "time"

// Pool is a handle of a spider pool. The caller numbers pools: small numbers, 0 is any spider.
type Pool struct {
	s  *Slots
	no uint32
}

// Pool returns the handle of a spider pool by its number.
func (s *Slots) Pool(no uint32) Pool { return Pool{s: s, no: no} }

// HasDocs reports whether documents for the pool are held.
func (p Pool) HasDocs() bool { return p.s.pools.at(p.no).queues > 0 }

// Suspended reports whether queues of the pool are suspended.
func (p Pool) Suspended() bool { return p.s.pools.at(p.no).suspended.head != 0 }

// FirstSuspended returns the first document of the queue that was suspended first; 0: none is.
func (p Pool) FirstSuspended() (doc uint32) {
	queue := p.s.pools.at(p.no).suspended.head
	if queue == 0 {
		return 0
	}
	return p.s.origins.At(queue).queue
}

// Resume lets the queue go on that was suspended first. It returns false if none is suspended.
func (p Pool) Resume(now time.Duration) bool { return p.s.resume(now, p.no) }

// ResumeFirst lets the queue go on that was suspended first; there must be one. It returns the
// first document of the queue if that may be sent now; otherwise Next returns it in time.
func (p Pool) ResumeFirst(now time.Duration) (sel Selection, ok bool) {
	return p.s.resumeFirst(now, p.no)
}
