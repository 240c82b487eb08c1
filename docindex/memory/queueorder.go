package memory

// queueOrder has the scheduled documents of a queue in the order in which they are handed out,
// without those that wait in branches, and all its documents by arrival.
type queueOrder struct {
	order
	first, last uint32 // documents
	removed     uint32 // number of removed documents
}

// order has scheduled documents in the order in which they are handed out: those of a queue, or of
// a branch of it.
//
// It is a heap of sorted runs. A run is a list of records that were scheduled in order, as
// happens while due times and priorities do not fall; so most queues are one list. The heap is a
// leftist tree of the first records of the runs. Each step costs O(log runs), from any place.
type order struct {
	root uint32 // the next record; 0: none
	tail uint32 // the end of the run that can grow; 0: none
}

// push schedules a record that is in no run.
func (s *documentTable) push(c *order, id uint32) {
	r := s.records.At(id)
	r.next, r.prev, r.left, r.right, r.rank = 0, 0, 0, 0, 1
	if c.tail != 0 && !s.goesBefore(id, c.tail) {
		s.records.At(c.tail).next = id
		r.prev = c.tail
		r.flags &^= isFirst
	} else {
		r.flags |= isFirst
		s.setRoot(c, s.merge(c.root, id))
	}
	c.tail = id
}

func (s *documentTable) setRoot(c *order, id uint32) {
	c.root = id
	if id != 0 {
		s.records.At(id).prev = 0
	}
}

// pull removes a record from the order.
func (s *documentTable) pull(c *order, id uint32) {
	r := s.records.At(id)
	if c.tail == id {
		c.tail = 0
		if r.flags&isFirst == 0 {
			c.tail = r.prev
		}
	}
	if r.flags&isFirst == 0 {
		s.records.At(r.prev).next = r.next
		if r.next != 0 {
			s.records.At(r.next).prev = r.prev
		}
		return
	}
	s.replace(c, id, s.merge(s.merge(r.left, r.right), s.head(r.next)))
	r.flags &^= isFirst
}

// head makes a record the first of its run, after the first one was removed.
func (s *documentTable) head(id uint32) uint32 {
	if id != 0 {
		r := s.records.At(id)
		r.flags |= isFirst
		r.left, r.right, r.prev, r.rank = 0, 0, 0, 1
	}
	return id
}

// replace puts a heap in the place of the first record of a run.
func (s *documentTable) replace(c *order, id, by uint32) {
	parent := s.records.At(id).prev
	if parent == 0 {
		s.setRoot(c, by)
		return
	}
	p := s.records.At(parent)
	if p.left == id {
		p.left = by
	} else {
		p.right = by
	}
	if by != 0 {
		s.records.At(by).prev = parent
	}
	s.mend(parent)
}

// mend corrects the ranks from a record upwards. It stops at the first rank that stays; so it costs
// O(log runs).
func (s *documentTable) mend(id uint32) {
	for id != 0 {
		r := s.records.At(id)
		if s.rank(r.left) < s.rank(r.right) {
			r.left, r.right = r.right, r.left
		}
		rank := s.rank(r.right) + 1
		if rank == r.rank {
			return
		}
		r.rank = rank
		id = r.prev
	}
}

// merge merges two heaps, either of which may be a single run. It recurses on right children only,
// at most 32 deep. It does not set prev of its result.
func (s *documentTable) merge(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return a + b
	}
	if s.goesBefore(b, a) {
		a, b = b, a
	}
	r := s.records.At(a)
	r.right = s.merge(r.right, b)
	s.records.At(r.right).prev = a
	if s.rank(r.left) < s.rank(r.right) {
		r.left, r.right = r.right, r.left
	}
	r.rank = s.rank(r.right) + 1
	return a
}

func (s *documentTable) rank(id uint32) uint8 {
	if id == 0 {
		return 0
	}
	return s.records.At(id).rank
}

// goesBefore orders records: the earlier due first, then the higher priority, then the one
// scheduled first.
func (s *documentTable) goesBefore(a, b uint32) bool {
	x, y := s.records.At(a), s.records.At(b)
	switch {
	case x.due() != y.due():
		return x.due() < y.due()
	case x.priority != y.priority:
		return x.priority > y.priority
	}
	return int32(x.seq-y.seq) < 0
}
