package hostslots

import (
	"time"
)

// Turn is a document that may be sent now.
type Selection struct {
	Group, Host, Origin, Doc uint32
	Pool                     uint32        // that the document is for
	Due                      time.Duration // since when
	Spider                   uint32        // that the slot's last document went to; 0: none
	lane                     uint32
}

// Next returns the document whose group has been due longest. Where none is
// due, wait is how long until one is, and 0 where none will be without some
// other event. The caller decides what happens to the document, by Send,
// Refuse, Hold or Park, before it calls again.
func (s *Slots) Next(now time.Duration) (t Selection, wait time.Duration, ok bool) {
	s.lapse(now) // a claim may have ended since the last Tick
	id, due, ok := s.sends.Min()
	for ; ok && due <= now && s.groups.At(id).settings != s.settings; id, due, ok = s.sends.Min() {
		s.place(now, id) // it may not be due by the settings that are in force now
	}
	if !ok {
		return Selection{}, 0, false
	}
	if due > now {
		return Selection{}, due - now, false
	}
	g := s.groups.At(id)
	return s.turn(id, s.best(s.hosts.At(g.turns.head))), 0, true
}

// turn is that of the first document of a lane, whose group may be asked.
func (s *Slots) turn(groupID, lane uint32) Selection {
	o := s.origins.At(lane)
	return Selection{
		Group: groupID, Host: o.host, Origin: o.origin(lane), Doc: o.queue, Pool: o.crew,
		Due: s.sends.Due(groupID), Spider: s.slots[s.groups.At(groupID).slot-1].spider, lane: lane,
	}
}

// Send marks the document of a turn as sent to a spider: a small number, not 0.
func (s *Slots) Send(now time.Duration, t Selection, spider uint32) TransID {
	s.pop(t.lane)
	s.docs.At(t.Doc).attempt(1)
	g := s.groups.At(t.Group)
	if s.byTurn.has(&g.turns, t.Host) { // the others come first now
		s.byTurn.remove(&g.turns, t.Host)
		s.byTurn.pushBack(&g.turns, t.Host)
	}
	g.sent++
	s.hosts.At(t.Host).open++
	g.last = now
	sl := &s.slots[g.slot-1]
	sl.spider = spider
	sl.sent++
	trans := s.open(now, t.Doc, g.slot-1, spider)
	s.place(now, t.Group)
	return trans
}

// open starts a transaction in a free place of the slot's active range.
func (s *Slots) open(now time.Duration, doc, slotID, spider uint32) TransID {
	sl := &s.slots[slotID]
	if sl.free == 0 {
		s.widen(sl)
	}
	active := sl.free - 1
	c := &s.cells[sl.cells+active]
	sl.free, c.next = c.next, 0
	id := s.txs.New()
	*s.txs.At(id) = transaction{doc: doc, slot: slotID, active: active, spider: spider, sent: now, status: now}
	c.tx = id
	s.byStatus.pushBack(&s.statuses, id)
	s.byAge.pushBack(&s.ages, id)
	for int(spider) >= len(s.spiders) {
		s.spiders = append(s.spiders, list{})
	}
	s.bySpider.pushBack(&s.spiders[spider], id)
	return TransID{Slot: slotID, Active: active, Generation: c.generation}
}

// widen doubles a slot's active range, up to the places that may be needed. Its
// cells move; generations go on.
func (s *Slots) widen(sl *slot) {
	from, size := sl.cells, sl.size
	sl.cells, sl.size = uint32(len(s.cells)), min(max(1, 2*size), uint32(s.cfg.MaxConcurrent))
	s.cells = append(s.cells, s.cells[from:from+size]...)
	for range sl.size - size {
		s.cells = append(s.cells, cell{generation: s.cfg.Generation})
	}
	s.gather(sl)
}

// gather makes a slot's list of free places, the first one first: those within
// the active range.
func (s *Slots) gather(sl *slot) {
	sl.free = 0
	for i := min(sl.size, uint32(s.cfg.MaxConcurrent)); i > 0; i-- {
		if c := &s.cells[sl.cells+i-1]; c.tx == 0 {
			c.next, sl.free = sl.free, i
		}
	}
}

// Transaction is one sending of a document that has not ended.
type Transaction struct {
	Doc, Spider uint32
	Sent        time.Duration
}

// Lookup returns the state of a transaction's name, and of a live one the transaction.
func (s *Slots) Lookup(t TransID) (TransState, Transaction) {
	c := s.cell(t)
	if c == nil {
		return Unknown, Transaction{}
	}
	if c.tx != 0 && (c.generation == t.Generation || faulty(faultStale)) {
		tx := s.txs.At(c.tx)
		return Live, Transaction{Doc: tx.doc, Spider: tx.spider, Sent: tx.sent}
	}
	if t.Generation-s.cfg.Generation < c.generation-s.cfg.Generation {
		return Stale, Transaction{}
	}
	return Unknown, Transaction{}
}

// cell finds a transaction's place: two array look-ups. nil: there is none.
func (s *Slots) cell(t TransID) *cell {
	if int64(t.Slot) >= int64(len(s.slots)) || t.Active >= s.slots[t.Slot].size {
		return nil
	}
	return &s.cells[s.slots[t.Slot].cells+t.Active]
}

// Working restarts the status timeout of a live transaction.
func (s *Slots) Working(now time.Duration, t TransID) {
	id := s.cell(t).tx
	s.txs.At(id).status = now
	s.byStatus.remove(&s.statuses, id)
	s.byStatus.pushBack(&s.statuses, id)
}

// Done ends a live transaction and returns its document, for the caller to End.
func (s *Slots) Done(now time.Duration, t TransID, status int, retryAfter time.Duration) (doc uint32) {
	id := s.cell(t).tx
	tx := *s.txs.At(id)
	g := s.groupOf(tx.doc)
	s.close(id)
	s.learn(now, s.groups.At(g), Feedback{Took: now - tx.sent, Status: status, RetryAfter: retryAfter})
	s.place(now, g)
	return tx.doc
}

// Delayed says that the documents that were sent to a spider at or after the
// given moment left the daemon only now. Their groups' gaps count from as much
// later as the first of them was: none from before now, and they do not fall into
// step.
func (s *Slots) LinesWritten(now time.Duration, spider uint32, from time.Duration) {
	if int(spider) >= len(s.spiders) {
		return
	}
	for id := s.spiders[spider].tail; id != 0 && s.txs.At(id).sent >= from; id = s.txs.At(id).bySpider.prev {
		tx := s.txs.At(id)
		s.touch(now, s.groupOf(tx.doc), now+tx.sent-from)
	}
}

// Touch counts now as the last request to the group of a live transaction.
func (s *Slots) MarkRequested(now time.Duration, t TransID) {
	s.touch(now, s.groupOf(s.txs.At(s.cell(t).tx).doc), now)
}

// Loiter has a group's gap begin later than with its last request.
func (s *Slots) delayGap(now time.Duration, groupID uint32, by time.Duration) {
	s.touch(now, groupID, now+by)
}

func (s *Slots) touch(now time.Duration, groupID uint32, last time.Duration) {
	g := s.groups.At(groupID)
	g.last = max(g.last, last)
	s.place(now, groupID)
}

func (s *Slots) groupOf(doc uint32) uint32 {
	return s.hosts.At(s.origins.At(s.docs.At(doc).origin).host).group
}

// close ends a transaction; its name becomes stale.
func (s *Slots) close(id uint32) {
	tx := s.txs.At(id)
	s.groups.At(s.groupOf(tx.doc)).sent--
	s.closed(s.origins.At(s.docs.At(tx.doc).origin).host)
	s.byStatus.remove(&s.statuses, id)
	s.byAge.remove(&s.ages, id)
	s.bySpider.remove(&s.spiders[tx.spider], id)
	sl := &s.slots[tx.slot]
	c := &s.cells[sl.cells+tx.active]
	generation := c.generation + 1
	if faulty(faultGeneration) {
		generation = s.cfg.Generation
	}
	*c = cell{generation: generation}
	if tx.active < uint32(s.cfg.MaxConcurrent) {
		c.next, sl.free = sl.free, tx.active+1
	}
	s.txs.Free(id)
}
