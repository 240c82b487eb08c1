package hostslots

import "time"

// Candidate is a document that is offered to the slots.
type Candidate struct {
	Origin   uint32 // from EnsureOrigin
	Pool     uint32 // the spider pool that it is for; 0: any spider
	Crawl    []byte // the crawl that it belongs to; empty: none
	ID, URL  []byte // copied; they have at most 127 and 16383 bytes
	OfOrigin bool   // the URL begins with the key of Origin, so that only the rest of it is copied
	Payload  []byte // copied; it has at most 8192 bytes
	Priority int32  // documents of an origin with a greater one go first
	Attempts int    // earlier sendings that count as attempts
}

// Doc is a held document. ID and Payload must not be changed. They are valid until the document
// ends, and AppendURL may be called until then.
type Doc struct {
	ID       []byte
	Payload  []byte // empty: none
	Host     uint32 // its number
	Priority int32
	Attempts int    // sendings so far that count
	Resent   bool   // it has come back from a spider
	Pool     uint32 // the spider pool that it is for; 0: any spider
	Crawl    string // its crawl, if Config.NameCrawls or CountDocs keeps it; empty: none

	key, url []byte // together they are its URL
}

// AppendURL appends the document's URL.
func (d *Doc) AppendURL(to []byte) []byte { return append(append(to, d.key...), d.url...) }

// Offer adds a document to the queue of its origin. It returns false, and does nothing, if a
// document with this ID is held already.
func (s *Slots) Offer(now time.Duration, c Candidate) bool {
	hash := s.hash(c.ID)
	if s.findDoc(hash, c.ID) != 0 && !faulty(FaultHeld) {
		return false
	}
	queue := s.ensureQueue(c.Origin, c.Pool)
	n := s.docs.New()
	crawl := s.crawls.number(c.Crawl)
	t := docText{id: c.ID, url: c.URL, payload: c.Payload, crawl: crawl, ofOrigin: c.OfOrigin}
	if t.ofOrigin {
		t.url = t.url[s.origins.At(c.Origin).textLen:]
	}
	*s.docs.At(n) = document{
		text: s.addText(t), origin: queue, priority: c.Priority, order: s.dispatch.queues.nextArrival() << 17,
	}
	s.docs.At(n).addAttempts(min(c.Attempts, maxAttempts))
	s.docByID.Add(hash, n)
	s.addDocs(queue, crawl, 1)
	s.enqueue(n)
	s.rescheduleHost(now, s.origins.At(queue).host)
	return true
}

// FindDoc returns the number of the document with this ID; 0: none is held.
func (s *Slots) FindDoc(id []byte) uint32 { return s.findDoc(s.hash(id), id) }

// Doc returns a held document by its number.
func (s *Slots) Doc(n uint32) Doc {
	d := s.docs.At(n)
	t := s.textOf(d)
	return Doc{
		ID: t.id, Payload: t.payload, Host: s.hostOfDoc(n), Priority: d.priority, Attempts: d.attempts(),
		Resent: d.order&resent != 0,
		Pool:   s.origins.At(d.origin).pool, Crawl: s.crawls.crawls[t.crawl].name,
		key: s.keyOf(d, &t), url: t.url,
	}
}

// keyOf returns the key of a document's origin if t.url is only the part after the key; otherwise nil.
func (r *registry) keyOf(d *document, t *docText) []byte {
	if !t.ofOrigin {
		return nil
	}
	return r.originKey(r.originOf(d.origin))
}

// End forgets a document that is neither queued nor at a spider: one that Dequeue,
// DequeueSelected, DequeueAny, NextFailed, Done or Lost took out, or that Requeue did not take.
func (s *Slots) End(now time.Duration, n uint32) {
	queue := s.docs.At(n).origin
	hostID := s.HostOf(queue)
	s.addDocs(queue, s.removeDoc(n), -1)
	s.dropEmptyQueue(queue)
	s.rescheduleHost(now, hostID)
}

// addDocs adds n, 1 or -1, to the counts of documents of an origin or pool queue, its host, its
// group and a crawl. The caller reschedules the group.
func (s *Slots) addDocs(queue uint32, crawl uint16, n int) {
	o := s.origins.At(queue)
	o.docs += uint32(n)
	h := s.hosts.At(o.host)
	if crawl != 0 {
		s.crawls.add(o.host, h.group, crawl, n)
	}
	h.docs += uint32(n)
	s.sweeper.update(o.host, h)
	if h.ruleBlocked || h.slow {
		s.updateRejected(o.host)
	}
	if h.group == 0 {
		s.unresolved.add(h, n)
		return
	}
	g := s.groups.At(h.group)
	if g.docs += uint32(n); h.slow {
		g.slowDocs += uint32(n)
	}
	loses, gets := g.docs == 0 && g.slot != 0, g.docs > 0 && g.slot == 0 && s.table.firstEmpty != 0
	if !loses && !gets { // a slot: reschedule takes or gives it, and then calls docsChanged
		s.docsChanged(h.group)
	}
}

// docsChanged updates what follows from the number of documents of a group: how many of them are
// leftover, whether its slot is full, and whether its hosts are rejected.
func (s *Slots) docsChanged(id uint32) {
	g := s.groups.At(id)
	if s.cfg.CountDocs && !g.changed {
		g.changed = true
		s.crawls.changed = append(s.crawls.changed, id)
	}
	docs, room := int(g.docs), 0
	if g.slot != 0 {
		room = max(s.cfg.Len, int(g.sent))
	}
	s.dispatch.slotQueue.Set(id, max(0, docs-room))
	if full := g.slot != 0 && docs >= room; full != g.full {
		g.full = full
		s.table.countFull(full)
	}
	docs -= int(g.slowDocs)
	reject := g.slot != 0 && docs >= room || docs > s.cfg.RejectOver || g.lease.state == denied
	s.rejects.set(id, g, reject && !faulty(FaultReject))
}

// ChangedGroups appends the groups whose number of documents may have changed since the last
// call. A number may have been given to another group meanwhile.
func (s *Slots) ChangedGroups(to []uint32) []uint32 {
	for _, id := range s.crawls.changed {
		s.groups.At(id).changed = false
	}
	to = append(to, s.crawls.changed...)
	s.crawls.changed = s.crawls.changed[:0]
	return to
}

// enqueue puts a document into the queue of its origin.
func (s *Slots) enqueue(doc uint32) {
	queue := s.docs.At(doc).origin
	o := s.origins.At(queue)
	offered := o.offers()
	s.dispatch.queues.push(&o.queue, doc)
	s.dispatch.anyFrom = min(s.dispatch.anyFrom, queue)
	s.queueChanged(queue, offered)
}

// dequeueFirst takes the first document out of a queue.
func (s *Slots) dequeueFirst(queue uint32) (doc uint32) {
	o := s.origins.At(queue)
	offered := o.offers()
	doc = s.dispatch.queues.pop(&o.queue)
	s.queueChanged(queue, offered)
	return doc
}

// Dequeue takes a document out of its queue, for the caller to End. It returns false, and does
// nothing, if the document is not queued.
func (s *Slots) Dequeue(doc uint32) bool {
	d := s.docs.At(doc)
	switch d.parent {
	case notQueued:
		return false
	case 0:
		s.dequeueFirst(d.origin)
	default:
		s.dispatch.queues.remove(doc)
	}
	return true
}

// DequeueAny takes some queued document out of its queue, for the caller to End. It looks at no
// more than most origins. If doc is 0, these had no queued document. more then reports whether
// there are other origins to look at; if not, no document is queued anywhere.
func (s *Slots) DequeueAny(most uint32) (doc uint32, more bool) {
	from, end := max(s.dispatch.anyFrom, 1), uint32(s.origins.Cap())
	to := min(from+most, end)
	for id := from; id < to; id++ {
		if s.origins.At(id).queue != 0 {
			s.dispatch.anyFrom = id
			return s.dequeueFirst(id), true
		}
	}
	s.dispatch.anyFrom = to
	return 0, to < end
}

// Queued calls yield with the DOC_IDs and URLs of no more than most documents that are queued at
// the origin, until yield returns false: first the next document for each spider pool, then some of
// those behind. Both slices are valid during the call only.
func (o Origin) Queued(most int, yield func(id, url []byte) bool) {
	s := o.s
	walk, url := s.dispatch.queues.walk[:0], s.dispatch.queues.url[:0]
	defer func() { s.dispatch.queues.walk, s.dispatch.queues.url = walk, url }()
	o.queues(func(id uint32) {
		if first := s.origins.At(id).queue; first != 0 {
			walk = append(walk, first)
		}
	})
	for i := 0; i < len(walk) && i < most; i++ {
		d := s.docs.At(walk[i])
		t := s.textOf(d)
		url = append(append(url[:0], s.keyOf(d, &t)...), t.url...)
		if !yield(t.id, url) {
			return
		}
		for _, id := range [2]uint32{d.left, d.right} {
			if id != 0 {
				walk = append(walk, id)
			}
		}
	}
}

// queueChanged updates the host of an origin or pool queue after the queue's first document, or its
// result of origin.offers, may have changed. before is that result before the change.
func (s *Slots) queueChanged(queue uint32, before bool) {
	if s.dispatch.offering.update(queue, before) != before {
		s.updateTurn(s.HostOf(queue))
	}
}

// SlotOf returns the group of a document, 0 if its host has none, and the moment at which that
// group got its slot; ok is false if it has no slot.
func (s *Slots) SlotOf(doc uint32) (groupID uint32, since time.Duration, ok bool) {
	groupID = s.groupOfDoc(doc)
	if groupID == 0 || s.groups.At(groupID).slot == 0 {
		return groupID, 0, false
	}
	return groupID, s.table.slots[s.groups.At(groupID).slot-1].since, true
}
