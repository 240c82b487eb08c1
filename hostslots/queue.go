package hostslots

// An origin's documents form a leftist heap: O(log n) at worst for adding and
// taking, whatever the order in which documents and priorities come (Knuth,
// The Art of Computer Programming 3, 5.2.3).

// first reports whether document a goes before document b: by priority, then
// in order of arrival.
func (s *Slots) first(a, b *document) bool {
	if a.priority != b.priority && !faulty(faultPriority) {
		return a.priority > b.priority
	}
	return a.arrival() < b.arrival() != faulty(faultOrder)
}

// merge joins two heaps; the depth of the recursion is logarithmic.
func (s *Slots) merge(a, b uint32) uint32 {
	if a == 0 {
		return b
	}
	if b == 0 {
		return a
	}
	x, y := s.docs.At(a), s.docs.At(b)
	if !s.first(x, y) {
		a, b, x = b, a, y
	}
	x.right = s.merge(x.right, b)
	s.docs.At(x.right).parent = a
	if s.rankOf(x.left) < s.rankOf(x.right) {
		x.left, x.right = x.right, x.left
	}
	x.setRank(s.rankOf(x.right) + 1)
	return a
}

func (s *Slots) rankOf(id uint32) uint8 {
	if id == 0 {
		return 0
	}
	return s.docs.At(id).rank()
}

// push puts document id into its origin's queue.
func (s *Slots) push(id uint32) {
	d := s.docs.At(id)
	d.left, d.right = 0, 0
	d.setRank(1)
	o := s.origins.At(d.origin)
	offered := o.offers()
	s.setFirst(o, s.merge(o.queue, id))
	s.offersChanged(o, offered)
}

// pop takes the first document out of an origin's queue.
func (s *Slots) pop(originID uint32) uint32 {
	o := s.origins.At(originID)
	offered := o.offers()
	id := o.queue
	d := s.docs.At(id)
	s.setFirst(o, s.merge(d.left, d.right))
	d.left, d.right, d.parent = 0, 0, away
	s.offersChanged(o, offered)
	return id
}

func (s *Slots) setFirst(o *origin, id uint32) {
	o.queue = id
	if id != 0 {
		s.docs.At(id).parent = 0
	}
}

// Drop takes a document out of the queue, wherever it stands there, for the caller to End. It answers false, and does
// nothing, where the document is not queued but at a spider.
func (s *Slots) Dequeue(id uint32) bool {
	d := s.docs.At(id)
	switch d.parent {
	case away:
		return false
	case 0:
		s.pop(d.origin)
		return true
	}
	parent, by := d.parent, s.merge(d.left, d.right)
	p := s.docs.At(parent)
	if p.left == id {
		p.left = by
	} else {
		p.right = by
	}
	if by != 0 {
		s.docs.At(by).parent = parent
	}
	s.mend(parent)
	d.left, d.right, d.parent = 0, 0, away
	return true
}

// Queued calls yield with the URLs of documents that are queued at an origin, at most so many, until it
// answers false: first with those that are next, each of its crew, and then with some that follow. A URL is good
// during the call.
func (s *Slots) Queued(originID uint32, most int, yield func(url []byte) bool) {
	line := s.walk[:0]
	defer func() { s.walk = line }()
	for id := s.hosts.At(s.HostOf(originID)).origins; id != 0; id = s.origins.At(id).next {
		if o := s.origins.At(id); (id == originID || o.base == originID) && o.queue != 0 {
			line = append(line, o.queue)
		}
	}
	for i := 0; i < len(line) && i < most; i++ {
		d := s.docs.At(line[i])
		if _, url, _ := s.textOf(d); !yield(url) {
			return
		}
		for _, id := range [2]uint32{d.left, d.right} {
			if id != 0 {
				line = append(line, id)
			}
		}
	}
}

// mend puts ranks right from a document upwards, which ends as soon as one stays; so it costs O(log documents).
func (s *Slots) mend(id uint32) {
	for id != 0 {
		d := s.docs.At(id)
		if s.rankOf(d.left) < s.rankOf(d.right) {
			d.left, d.right = d.right, d.left
		}
		rank := s.rankOf(d.right) + 1
		if rank == d.rank() {
			return
		}
		d.setRank(rank)
		id = d.parent
	}
}

// offersChanged keeps the host's count of origins that have a document to send.
func (s *Slots) offersChanged(o *origin, before bool) {
	if o.offers() == before {
		return
	}
	h := s.hosts.At(o.host)
	if before {
		h.offers--
	} else {
		h.offers++
	}
	s.review(o.host)
}

// review lets a host take turns in its group while it has something to send.
func (s *Slots) review(hostID uint32) {
	h := s.hosts.At(hostID)
	if h.group == 0 {
		return
	}
	s.byTurn.set(&s.groups.At(h.group).turns, hostID, h.offers > 0 && !h.shut())
}

// best returns the origin of a host whose first document is to go next.
func (s *Slots) best(h *host) uint32 {
	var best uint32
	for id := h.origins; id != 0; id = s.origins.At(id).next {
		o := s.origins.At(id)
		if o.offers() && (best == 0 || s.first(s.docs.At(o.queue), s.docs.At(s.origins.At(best).queue))) {
			best = id
		}
	}
	return best
}
