package hostslots

import (
	"math"
	"time"

	"urlserver/internal/container/slab"
)

// slotTable is the host slots with their active ranges and transactions. The name of a transaction
// is its slot, its cell in the active range, and a generation that grows with each transaction of
// the cell; so finding it takes two array look-ups, and no name comes twice.
type slotTable struct {
	cfg           *settings
	slots         []slot
	cells         []cell
	firstEmpty    uint32 // of the empty slots: its number plus one; 0: none is empty
	used, full    int    // slots
	transactions  slab.Slab[transaction]
	byStatus      recordList[transaction] // longest without a status first
	byAge         recordList[transaction] // oldest first
	spiderLinks   links[transaction]
	spiders       []list        // transactions by spider, oldest first
	ignoreSilence time.Duration // no transaction is overdue before this moment
}

// slot is one of the fixed number of host slots.
type slot struct {
	group    uint32        // 0: empty
	spider   uint32        // that the last document was sent to; 0: none
	sent     uint32        // documents since the group has the slot
	next     uint32        // of an empty slot: the next one, plus one
	cells    uint32        // where its active range begins in slotTable.cells
	size     uint32        // cells of its active range; it grows as they are needed
	free     uint32        // first free cell of the active range, plus one
	revision uint32        // of the settings that its list of free cells was made by
	since    time.Duration // when its group got it
}

// cell is one place of an active range.
type cell struct {
	generation  uint32 // of its current or next transaction
	transaction uint32 // 0: the cell is free
	next        uint32 // of a free cell: the next one, plus one
}

// transaction is one document at a spider: 64 bytes, a cache line.
type transaction struct {
	doc, slot, active, spider uint32
	sent                      time.Duration
	status                    time.Duration // of the last status, or sent
	byStatus                  link
	byAge                     link
	bySpider                  link
	host                      uint32 // of the document
}

// TransID is the name of a transaction: one sending of a document to a spider.
type TransID struct{ Slot, Active, Generation uint32 }

// TransState says what the name of a transaction stands for.
type TransState uint8

const (
	Unknown TransState = iota // no transaction ever had this name
	Stale                     // it has ended: by a status, a timeout, or the end of its spider
	Live                      // it has not ended
)

// Transaction is one sending of a document that has not ended.
type Transaction struct {
	Doc, Spider uint32
	Sent        time.Duration
}

// Lateness says whether a transaction is overdue, and why.
type Lateness uint8

const (
	InTime  Lateness = iota
	Silent           // no status for Config.StatusTimeout
	Endless          // older than Config.MaxFetch
)

func (t *slotTable) init(cfg *settings) {
	t.cfg = cfg
	t.slots = make([]slot, cfg.Count)
	t.cells = make([]cell, 0, cfg.Count)
	t.byStatus = newRecordList(&t.transactions, func(tx *transaction) *link { return &tx.byStatus })
	t.byAge = newRecordList(&t.transactions, func(tx *transaction) *link { return &tx.byAge })
	t.spiderLinks = newLinks(&t.transactions, func(tx *transaction) *link { return &tx.bySpider })
	for i := range t.slots {
		t.slots[i].next = uint32(i) + 2
	}
	t.slots[cfg.Count-1].next = 0
	t.firstEmpty = 1
}

// assign gives an empty slot, of which there must be one, to a group. It returns the slot's number.
func (t *slotTable) assign(now time.Duration, groupID uint32) (n uint32) {
	n = t.firstEmpty - 1
	sl := &t.slots[n]
	t.firstEmpty = sl.next
	t.applySettings(n)
	sl.group, sl.next, sl.sent, sl.since = groupID, 0, 0, now
	t.used++
	return n
}

// release empties a slot without transactions.
func (t *slotTable) release(n uint32) {
	sl := &t.slots[n]
	sl.group, sl.next, sl.spider = 0, t.firstEmpty, 0
	t.firstEmpty = n + 1
	t.used--
}

// countFull counts a slot that has become full, or is full no longer.
func (t *slotTable) countFull(full bool) {
	if full {
		t.full++
	} else {
		t.full--
	}
}

// open starts a transaction in the first free cell of a slot.
func (t *slotTable) open(now time.Duration, doc, host, n, spider uint32) TransID {
	sl := &t.slots[n]
	if sl.free == 0 {
		t.growActive(sl)
	}
	active := sl.free - 1
	c := &t.cells[sl.cells+active]
	sl.free, c.next = c.next, 0
	sl.spider = spider
	sl.sent++
	id := t.transactions.New()
	*t.transactions.At(id) = transaction{
		doc: doc, slot: n, active: active, spider: spider, sent: now, status: now, host: host,
	}
	c.transaction = id
	t.byStatus.pushBack(id)
	t.byAge.pushBack(id)
	for int(spider) >= len(t.spiders) {
		t.spiders = append(t.spiders, list{})
	}
	t.spiderLinks.pushBack(&t.spiders[spider], id)
	return TransID{Slot: n, Active: active, Generation: c.generation}
}

// close ends a transaction. Its name is stale from now on.
func (t *slotTable) close(id uint32) {
	tx := t.transactions.At(id)
	t.byStatus.remove(id)
	t.byAge.remove(id)
	t.spiderLinks.remove(&t.spiders[tx.spider], id)
	sl := &t.slots[tx.slot]
	c := &t.cells[sl.cells+tx.active]
	generation := c.generation + 1
	if faulty(FaultGeneration) {
		generation = t.cfg.Generation
	}
	*c = cell{generation: generation}
	if tx.active < uint32(t.cfg.MaxConcurrent) {
		c.next, sl.free = sl.free, tx.active+1
	}
	t.transactions.Free(id)
}

// growActive doubles the active range of a slot, up to Config.MaxConcurrent cells. The cells are
// copied with their generations.
func (t *slotTable) growActive(sl *slot) {
	from, size := sl.cells, sl.size
	sl.cells, sl.size = uint32(len(t.cells)), min(max(1, 2*size), uint32(t.cfg.MaxConcurrent))
	t.cells = append(t.cells, t.cells[from:from+size]...)
	for range sl.size - size {
		t.cells = append(t.cells, cell{generation: t.cfg.Generation})
	}
	t.linkFreeCells(sl)
}

// linkFreeCells makes the list of a slot's free cells, in order: those below Config.MaxConcurrent.
func (t *slotTable) linkFreeCells(sl *slot) {
	sl.free = 0
	for i := min(sl.size, uint32(t.cfg.MaxConcurrent)); i > 0; i-- {
		if c := &t.cells[sl.cells+i-1]; c.transaction == 0 {
			c.next, sl.free = sl.free, i
		}
	}
}

// applySettings makes the list of a slot's free cells again if settings have changed.
func (t *slotTable) applySettings(n uint32) {
	if sl := &t.slots[n]; sl.revision != t.cfg.revision {
		sl.revision = t.cfg.revision
		t.linkFreeCells(sl)
	}
}

// cell returns the cell that a transaction's name is about; nil: there is none.
func (t *slotTable) cell(name TransID) *cell {
	if int64(name.Slot) >= int64(len(t.slots)) || name.Active >= t.slots[name.Slot].size {
		return nil
	}
	return &t.cells[t.slots[name.Slot].cells+name.Active]
}

// read reads what is needed of a slot, by its number plus one, so that the processor has it in its
// cache by then. The result means nothing.
func (t *slotTable) read(slot uint32) uint32 {
	if slot == 0 {
		return 0
	}
	sl := &t.slots[slot-1]
	if sl.free == 0 {
		return sl.spider
	}
	return uint32(sl.since) + t.cells[sl.cells+sl.free-1].generation
}

// live returns the number of a live transaction.
func (t *slotTable) live(name TransID) uint32 { return t.cell(name).transaction }

func (t *slotTable) lookup(name TransID) (TransState, Transaction) {
	c := t.cell(name)
	if c == nil {
		return Unknown, Transaction{}
	}
	if c.transaction != 0 && (c.generation == name.Generation || faulty(FaultStale)) {
		tx := t.transactions.At(c.transaction)
		return Live, Transaction{Doc: tx.doc, Spider: tx.spider, Sent: tx.sent}
	}
	if name.Generation-t.cfg.Generation < c.generation-t.cfg.Generation {
		return Stale, Transaction{}
	}
	return Unknown, Transaction{}
}

// working notes a status of a transaction.
func (t *slotTable) working(now time.Duration, id uint32) {
	t.transactions.At(id).status = now
	t.byStatus.moveToBack(id)
}

// silentAt returns the moment at which a transaction is overdue for want of a status.
func (t *slotTable) silentAt(id uint32) time.Duration {
	return max(t.transactions.At(id).status+t.cfg.StatusTimeout, t.ignoreSilence)
}

// endlessAt returns the moment at which a transaction is overdue for its age.
func (t *slotTable) endlessAt(id uint32) time.Duration {
	if t.cfg.MaxFetch == 0 {
		return math.MaxInt64
	}
	return max(t.transactions.At(id).sent+t.cfg.MaxFetch, t.ignoreSilence)
}

func (t *slotTable) lateness(now time.Duration, id uint32) Lateness {
	switch {
	case now >= t.endlessAt(id): // before Silent, of which other documents at the spider may be the cause
		return Endless
	case now >= t.silentAt(id):
		return Silent
	}
	return InTime
}

// newest returns the last transaction of a spider; 0: it has none.
func (t *slotTable) newest(spider uint32) (id uint32) {
	if int(spider) >= len(t.spiders) {
		return 0
	}
	return t.spiders[spider].tail
}

// older returns the transaction of the same spider before this one; 0: it is the first.
func (t *slotTable) older(id uint32) uint32 { return t.transactions.At(id).bySpider.prev }
