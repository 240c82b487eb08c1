package disk

import (
	"bytes"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// txn has the changes of one step under the lock. It is applied as a whole or not at all. There is
// one at a time.
type txn struct {
	db     *database
	queues *queueTable
	crawls *crawls

	b            *pebble.Batch
	docs         map[name]doc     // records that it has written
	ids          map[string]name  // DOC_IDs that clients gave in it, and documents' keys by unique
	bodies       map[place][]byte // bodies in the first indexed bytes of its batch
	indexed      int
	dirty        []uint32         // queues whose counts it changes
	rewritten    []uint32         // queues whose rows it writes
	endedBatches []uint64         // lease batches without a lease; the next commit deletes their rows
	leased       []byte           // the row of a lease batch of other daemons
	reads        *pebble.Iterator // over documents' rows
	tables       *pebble.Iterator // over documents' rows in tables only
	trims        bool             // it was begun to evict queues
	prefetched   []prefetched     // results for the URLs that it stores
	order        []uint32         // indexes in prefetched of the URLs whose rows prefetch reads, by name
	cold         []uint32         // indexes in prefetched of the URLs whose queues are not in memory, by key
	rows         []row            // of its batch
	byKind       [256][]sortKey   // of the rows, by the first bytes of their keys
	key          []byte
	value        []byte
}

// begin begins a txn. After an error there is none.
func (t *txn) begin() error {
	if err := t.db.usable(); err != nil {
		return err
	}
	if err := t.db.space.check(); err != nil {
		return err
	}
	t.b = t.db.NewBatch()
	if t.docs == nil {
		t.docs, t.ids = map[name]doc{}, map[string]name{}
	}
	return nil
}

// set writes a row from the txn's buffers.
func (t *txn) set() { t.b.Set(t.key, t.value, nil) } // it cannot fail on a Batch that belongs to no commit

// bodyAt returns the body that the txn has written at a place, or nil. It indexes the batch when it
// is first called, since few txns read what they wrote.
func (t *txn) bodyAt(at *place) []byte {
	if t.b == nil {
		return nil
	}
	if t.bodies == nil {
		t.bodies = map[place][]byte{}
	}
	r := t.b.Reader()
	end := len(r)
	for r = r[t.indexed:]; ; {
		kind, key, value, ok, err := r.Next()
		if !ok || err != nil {
			break
		}
		if kind == pebble.InternalKeyKindSet && len(key) == planKeyLen && key[0] == planRow {
			t.bodies[place(key[planKeyLen-placeLen:])] = value
		}
	}
	t.indexed = end
	return t.bodies[*at]
}

// commit applies the txn. It returns the batch to pass to waitSync, or nil if waitSync has no batch
// to wait for.
func (t *txn) commit() (*pebble.Batch, error) { return t.apply(t.db.cfg.Sync == Batch) }

// commitLazily applies the txn without a sync. The sync of a later commit, or waitSync without a
// batch, syncs it too.
func (t *txn) commitLazily() error {
	_, err := t.apply(false)
	return err
}

// apply applies the txn. With sync it returns the batch, whose sync is under way.
func (t *txn) apply(sync bool) (*pebble.Batch, error) {
	defer t.clear()
	if t.db.failed != nil { // a queue that could not be read is not a new one
		t.b.Close()
		return nil, t.db.failed
	}
	for _, no := range t.endedBatches {
		t.b.Delete(countKey(leaseBatchRow, no), nil)
	}
	t.endedBatches = t.endedBatches[:0]
	t.crawls.writeRows()
	t.queues.writeTotals()
	if t.b.Empty() && len(t.dirty)+len(t.rewritten) == 0 && !t.trims && !t.queues.cold.evictor.isOverfull() {
		return nil, t.b.Close()
	}
	now := t.queues.now()
	t.queues.journal.no++
	t.queues.journalRow(now)
	for _, id := range t.rewritten {
		t.queues.at(id).rewrite = false
		t.queues.writeRow(id, now)
	}
	t.queues.cold.evictor.choose(t.dirty, now, func(id uint32, at queuesched.Moment) {
		t.queues.cold.evict(id, at, now)
	})
	t.queues.checkpoint(now)
	return t.db.write(t.sortBatch(t.db.DB, t.b), sync)
}

// clear prepares the txn for the next use.
func (t *txn) clear() {
	t.b, t.trims = nil, false
	t.closeReads()
	clear(t.docs)
	clear(t.ids)
	clear(t.bodies)
	t.indexed = 0
	clear(t.prefetched)
	t.prefetched, t.order, t.cold = t.prefetched[:0], t.order[:0], t.cold[:0]
	t.dirty, t.rewritten = t.dirty[:0], t.rewritten[:0]
	if cap(t.value) > maxKept {
		t.value = nil
	}
}

func (t *txn) closeReads() {
	for _, it := range []**pebble.Iterator{&t.reads, &t.tables} {
		if *it != nil {
			(*it).Close() // the reads have returned its errors
			*it = nil
		}
	}
}

const maxKept = 1 << 20 // bytes; a txn does not keep a larger buffer for the next one

// settle writes the rows of all queues that the journal has changes of, so that the next Open loads
// none for that. Where the disk is full, the journal keeps them.
func (t *txn) settle() {
	t.queues.journal.most, t.queues.settles = 0, true
	for len(t.queues.journal.dirty) > 0 && t.begin() == nil {
		t.trims = true
		if t.commitLazily() != nil {
			return
		}
	}
}

// row reads a document's row as it was before the txn. It returns nil if there is no row.
func (t *txn) row(n *name) ([]byte, error) {
	it, err := t.rowsIn(!t.db.memtables.has(n))
	if err != nil {
		return nil, err
	}
	t.key = n.docKey(t.key[:0])
	if !it.SeekPrefixGE(t.key) {
		return nil, it.Error()
	}
	value, err := it.ValueAndErr()
	return bytes.Clone(value), err
}

// rowsIn returns the txn's iterator over the documents' rows as they were before the txn: over
// tables alone, or over memtables, too. It opens the iterator on first use.
//
// The memtable filter drops a generation only before the first of the two iterators is opened. So
// the table iterator sees each row whose name is missing from the filter, however long ago the
// iterator was opened.
func (t *txn) rowsIn(tables bool) (*pebble.Iterator, error) {
	it := &t.reads
	if tables {
		it = &t.tables
	}
	if *it != nil {
		return *it, nil
	}
	if t.reads == nil && t.tables == nil {
		t.db.memtables.dropFlushed()
	}
	var err error
	*it, err = t.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{docRow}, UpperBound: []byte{docRow + 1}, UseL6Filters: true,
		OnlyReadGuaranteedDurable: tables,
	})
	return *it, err
}

// abort gives up a txn that has already changed state in memory.
func (t *txn) abort(err error) error {
	t.b.Close()
	t.clear()
	return t.db.fail(err)
}

// lease adds the next document of a queue to the leases of other daemons, and returns their batch.
func (t *txn) lease(w *queueIterator) (batch uint64) {
	t.leased = append(binary.BigEndian.AppendUint32(t.leased, w.q.no), w.at[:]...)
	return t.queues.journal.no + 1
}

// commitLeases applies the txn with the leases of the given number of documents, without a sync. If
// err is not nil, it aborts the txn instead.
func (t *txn) commitLeases(documents int, err error) error {
	if err != nil {
		return t.abort(err)
	}
	if documents > 0 {
		t.b.Set(countKey(leaseBatchRow, t.queues.journal.no+1), t.leased, nil)
	}
	return t.commitLazily()
}

// trim evicts queues in a commit of its own, after a call that has loaded queues and writes
// nothing.
func (t *txn) trim(now int64) error {
	if !t.queues.cold.evictor.isOverfull() || t.db.failed != nil || t.db.space.check() != nil {
		return nil
	}
	t.clear()
	if err := t.begin(); err != nil {
		return err
	}
	t.trims = true
	return t.commitLazily()
}
