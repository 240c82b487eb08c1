package hostslots

import (
	"time"

	"urlserver/internal/container/slab"
)

// pools has the suspended queues of spider pools. The documents of an origin that are for one pool have a
// pool queue of their own, so that they hold up no others while no spider of their pool is free. A
// pool queue exists while it has documents. Documents for any spider, pool 0, are in the queue of
// the origin itself.
type pools struct {
	pools       []pool
	suspensions slab.Slab[suspension]
	links       links[suspension] // of pools
}

// suspension is a queue that waits for a spider of its pool.
type suspension struct {
	queue uint32
	link  link
}

type pool struct {
	queues    int  // pool queues
	suspended list // suspensions, longest first
}

func (p *pools) init() {
	p.links = newLinks(&p.suspensions, func(s *suspension) *link { return &s.link })
}

func (p *pools) at(no uint32) *pool {
	for int(no) >= len(p.pools) {
		p.pools = append(p.pools, pool{})
	}
	return &p.pools[no]
}

// suspend adds a queue to the suspended ones of its pool.
func (p *pools) suspend(o *origin, queue uint32) {
	o.closed |= forSpider
	o.place = p.suspensions.New()
	p.suspensions.At(o.place).queue = queue
	p.links.pushBack(&p.at(o.pool).suspended, o.place)
}

// resume undoes suspend, if the queue is suspended.
func (p *pools) resume(o *origin) {
	if o.closed&forSpider != 0 {
		p.links.remove(&p.pools[o.pool].suspended, o.place)
		p.suspensions.Free(o.place)
		o.closed, o.place = o.closed&^forSpider, 0
	}
}

// ensureQueue returns the pool queue of an origin, which it adds if there is none. For pool 0 that
// is the origin itself.
func (s *Slots) ensureQueue(originID, poolNo uint32) uint32 {
	if poolNo == 0 {
		return originID
	}
	for id := s.origins.At(originID).next; id != 0 && s.origins.At(id).pool != 0; id = s.origins.At(id).next {
		if s.origins.At(id).pool == poolNo {
			return id
		}
	}
	s.pools.at(poolNo).queues++
	return s.addQueue(originID, poolNo)
}

// changePool moves a document that is not queued to another queue of its origin.
func (s *Slots) changePool(doc, poolNo uint32) {
	from := s.docs.At(doc).origin
	to := s.ensureQueue(s.originOf(from), poolNo)
	if to == from {
		return
	}
	s.docs.At(doc).origin = to
	s.origins.At(to).docs++
	s.origins.At(from).docs--
	s.dropEmptyQueue(from)
}

// dropEmptyQueue forgets a pool queue without documents. The queue of an origin itself is not
// forgotten: dropEmptyQueue only ends its suspension.
func (s *Slots) dropEmptyQueue(id uint32) {
	o := s.origins.At(id)
	if o.docs > 0 {
		return
	}
	s.pools.resume(o)
	if o.pool != 0 {
		s.pools.pools[o.pool].queues--
		s.unlinkQueue(id)
		s.removeOrigin(id)
	}
}

// Suspend holds back the queue of the selected document until Pool.Resume or Pool.ResumeFirst: no
// spider of its pool is free.
func (s *Slots) Suspend(now time.Duration, sel Selection) {
	s.dispatch.offering.remove(sel.queue)
	s.pools.suspend(s.origins.At(sel.queue), sel.queue)
	s.updateTurn(sel.Host)
	s.reschedule(now, sel.Group)
}

// AnySuspended reports whether queues of any pool are suspended.
func (s *Slots) AnySuspended() bool { return s.pools.suspensions.Len() > 0 }

// Pool is a handle of a spider pool. The caller numbers pools: small numbers, 0 is any spider.
type Pool struct {
	s  *Slots
	no uint32
}

// Pool returns the handle of a spider pool by its number.
func (s *Slots) Pool(no uint32) Pool { return Pool{s: s, no: no} }

func (p Pool) record() *pool { return p.s.pools.at(p.no) }

// HasDocs reports whether documents for the pool are held.
func (p Pool) HasDocs() bool { return p.record().queues > 0 }

// Suspended reports whether queues of the pool are suspended.
func (p Pool) Suspended() bool { return p.record().suspended.head != 0 }

// FirstSuspended returns the first document of the queue that was suspended first; 0: none is.
func (p Pool) FirstSuspended() (doc uint32) {
	if queue := p.firstQueue(); queue != 0 {
		return p.s.origins.At(queue).queue
	}
	return 0
}

// firstQueue returns the queue that was suspended first; 0: none is suspended.
func (p Pool) firstQueue() uint32 {
	if id := p.record().suspended.head; id != 0 {
		return p.s.pools.suspensions.At(id).queue
	}
	return 0
}

// Resume lets the queue go on that was suspended first. It returns false if none is suspended.
func (p Pool) Resume(now time.Duration) bool {
	queue := p.firstQueue()
	if queue == 0 {
		return false
	}
	o := p.s.origins.At(queue)
	p.s.pools.resume(o)
	p.s.queueChanged(queue, false)
	p.s.rescheduleHost(now, o.host)
	return true
}

// ResumeFirst lets the queue go on that was suspended first; there must be one. It returns the
// first document of the queue if that may be sent now; otherwise Next returns it in time.
func (p Pool) ResumeFirst(now time.Duration) (sel Selection, ok bool) {
	queue := p.firstQueue()
	p.Resume(now)
	o := p.s.origins.At(queue)
	h := p.s.hosts.At(o.host)
	ready := &p.s.dispatch.ready
	if !o.offers() || h.closed() || !ready.Has(h.group) || ready.Due(h.group) > now ||
		!p.s.isRequestable(now, o.host) {
		p.s.rescheduleHost(now, o.host)
		return Selection{}, false
	}
	return p.s.selection(h.group, queue), true
}
