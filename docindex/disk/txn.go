package disk

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/queuesched"
)

// txn has the changes of one step under the lock. It is applied as a whole or not at all. There is
// one at a time.
type txn struct {
	b            *pebble.Batch
	docs         map[name]doc     // records that it has written
	ids          map[string]name  // DOC_IDs that clients gave in it, and documents' keys by unique
	bodies       map[place][]byte // bodies in the first indexed bytes of its batch
	indexed      int
	dirty        []uint32         // queues whose counts it changes
	rewritten    []uint32         // queues whose rows it writes
	endedBatches []uint64         // lease batches without a lease; the next commit deletes their rows
	reads        *pebble.Iterator // over documents' rows
	tables       *pebble.Iterator // over documents' rows in tables only
	trims        bool             // it was begun to evict queues
	prefetched   []prefetched     // results for the URLs that it stores
	order        []uint32         // indexes in prefetched of those whose rows are read, by name
	cold         []uint32         // likewise of those whose queues are not in memory, by key
	rows         []row            // of its batch
	key          []byte
	value        []byte
}

// beginLocked begins a txn. After an error there is none.
func (s *Store) beginLocked() error {
	if err := s.usableLocked(); err != nil {
		return err
	}
	if err := s.space.check(); err != nil {
		return err
	}
	t := &s.txn
	t.b = s.db.NewBatch()
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

// markDirty notes that the txn changes a queue, so that the journal row has the change.
func (s *Store) markDirty(id uint32) *queue {
	q := s.queueAt(id)
	if !q.dirty {
		q.dirty, q.touched = true, true
		s.txn.dirty = append(s.txn.dirty, id)
	}
	return q
}

// rewriteRow writes a queue's row as it is after the txn.
func (s *Store) rewriteRow(id uint32) {
	if q := s.queueAt(id); !q.rewrite {
		q.rewrite, q.touched = true, true
		s.txn.rewritten = append(s.txn.rewritten, id)
	}
}

// commitLocked applies the txn. It returns the batch to pass to waitSync, or nil if waitSync has no
// batch to wait for.
func (s *Store) commitLocked() (*pebble.Batch, error) { return s.applyLocked(s.cfg.Sync == Batch) }

// commitLazilyLocked applies the txn without a sync. The sync of a later commit, or waitSync
// without a batch, syncs it too.
func (s *Store) commitLazilyLocked() error {
	_, err := s.applyLocked(false)
	return err
}

// applyLocked applies the txn. With sync it returns the batch, whose sync is under way.
func (s *Store) applyLocked(sync bool) (*pebble.Batch, error) {
	t := &s.txn
	defer t.clear()
	if s.failed != nil { // a queue that could not be read is not a new one
		t.b.Close()
		return nil, s.failed
	}
	for _, no := range t.endedBatches {
		t.b.Delete(countKey(leaseBatchRow, no), nil)
	}
	t.endedBatches = t.endedBatches[:0]
	s.writeCrawlsLocked()
	s.writeTotalsLocked()
	if t.b.Empty() && len(t.dirty)+len(t.rewritten) == 0 && !t.trims && !s.cold.evictor.isOverfull() {
		return nil, t.b.Close()
	}
	now := s.base.Now()
	s.journal.no++
	s.journalLocked(now)
	for _, id := range t.rewritten {
		s.queueAt(id).rewrite = false
		s.writeQueueLocked(id, now)
	}
	s.cold.evictor.choose(t.dirty, now, func(id uint32, at queuesched.Moment) { s.evictQueueLocked(id, at, now) })
	s.checkpointLocked(now)
	b := t.sortBatch(s.db, t.b)
	bytes, rows := b.Len(), int(b.Count())
	s.space.wrote(bytes)
	b, err := s.writeBatchLocked(b, sync)
	if err == nil && s.memtables.count(bytes, rows) {
		err = s.flushLocked()
	}
	if err != nil {
		return nil, s.failLocked(err)
	}
	return b, nil
}

// writeBatchLocked applies a batch to the database. With sync it returns the batch.
func (s *Store) writeBatchLocked(b *pebble.Batch, sync bool) (*pebble.Batch, error) {
	if sync {
		return b, s.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return nil, err
	}
	return nil, b.Close()
}

// flushLocked starts a flush of the memtables into tables.
func (s *Store) flushLocked() error {
	flushed, err := s.db.AsyncFlush()
	if err == nil {
		s.memtables.next(flushed)
	}
	return err
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

// waitSync waits until the commit with a number is on disk.
func (s *Store) waitSync(b *pebble.Batch, number uint64) error {
	if s.cfg.Sync != Batch {
		return nil
	}
	var err error
	switch {
	case b != nil:
		err = b.SyncWait()
		b.Close()
	case s.synced.Load() >= number:
		return nil
	default: // another call's commit, whose sync may be under way
		if err = s.helper(); err != nil {
			return err
		}
		err = s.db.LogData(nil, pebble.Sync)
		s.helpers.Done()
	}
	if err != nil {
		s.fatal(err)
	}
	for {
		old := s.synced.Load()
		if old >= number || s.synced.CompareAndSwap(old, number) {
			return nil
		}
	}
}

// journal records which commits contain changes that the queues' rows do not contain.
type journal struct {
	no    uint64   // the last commit
	first uint64   // the first commit that has a row
	sizes []uint32 // changes in each row from first on
	total int      // changes in all rows
	dirty []dirtyQueue
	most  int // with more changes than this, commits write queues' rows
}

// dirtyQueue is a queue that a commit changed.
type dirtyQueue struct {
	id    uint32
	since uint64
}

const (
	maxJournal = 100_000 // changes in the journal
	maxRows    = 1000    // queues' rows that one commit writes to shorten the journal
)

// journalLocked writes the journal row of the commit.
func (s *Store) journalLocked(now int64) {
	t, j := &s.txn, &s.journal
	v := binary.AppendVarint(t.value[:0], now)
	v = s.globals.append(v)
	for _, id := range t.dirty {
		q := s.queueAt(id)
		q.dirty = false
		c := change{queue: q.no, scheduled: int64(q.scheduled), completed: int64(q.completed), served: q.served}
		q.scheduled, q.completed, q.served = 0, 0, [2]bool{}
		v = c.append(v)
		if q.dirtySince == 0 {
			q.dirtySince = j.no
			j.dirty = append(j.dirty, dirtyQueue{id: id, since: j.no})
		}
	}
	t.value = v
	t.b.Set(countKey(journalRow, j.no), v, nil)
	size := 1 + len(t.dirty)
	j.sizes = append(j.sizes, uint32(size))
	j.total += size
}

// writeQueueLocked writes the row of a queue in memory, with the changes of the current commit. If it
// may be evicted, and its wake row need not move, it has the rows of a queue on disk alone then, so
// that evicting it writes nothing unless it changes before. Otherwise its wake row may stay as it is
// if it is early enough.
func (s *Store) writeQueueLocked(id uint32, now int64) {
	q := s.queueAt(id)
	if p, ok := s.cold.evictor.mayLeave(id, now); ok && (q.wake == queuesched.NoMoment || q.wake == p.at) {
		s.writeColdLocked(id, p.at, now)
		return
	}
	switch n := s.base.Sched.Persist(id).Scheduled; {
	case n == 0:
		s.wakeLocked(id, queuesched.NoMoment, false, 0, now)
	case q.wake == queuesched.NoMoment && q.due == queuesched.Never: // all of it is in transit
		s.wakeLocked(id, 0, false, n, now)
	case queuesched.MomentOf(q.due) < q.wake && q.wake.MS() > now:
		s.wakeLocked(id, queuesched.MomentOf(q.due), false, n, now)
	}
	s.queueRowLocked(id, false, now)
	q.touched = true
}

// queueRowLocked writes a queue's row. cold: as that of a queue on disk alone.
func (s *Store) queueRowLocked(id uint32, cold bool, now int64) {
	q := s.queueAt(id)
	q.dirtySince = 0
	r := queueRecord{
		Persisted: s.base.Sched.Persist(id), crawl: []byte(s.base.Sched.Crawl(id)),
		key: s.base.Sched.Key(id), hasIDs: q.hasIDs, ownerless: !q.owners, asOf: s.journal.no, wake: q.wake,
	}
	if cold && r.Scheduled > 0 {
		r.due, r.cursor = q.due, q.first()
	}
	s.txn.value = r.append(s.txn.value[:0])
	s.txn.b.Set(numberKey(queueRow, q.no), s.txn.value, nil)
	if is := r.isSet(now); is != q.set {
		if q.set = is; is {
			s.txn.b.Set(numberKey(setRow, q.no), nil, nil)
		} else {
			s.txn.b.Delete(numberKey(setRow, q.no), nil)
		}
	}
	if until := s.base.Sched.GapEnd(id); until > now { // or else a restart forgets it until the queue is loaded
		pause, gap, backoff := s.base.Sched.HostPause(r.key)
		s.keepPauseLocked(r.key, max(until, pause), gap, backoff, s.journal.no)
	}
}

// first returns a place before all scheduled documents of a queue of which none is in transit.
func (q *queue) first() place {
	if !q.backfill.open {
		return q.cursor
	}
	p := q.backfill.from
	return newPlace(p.due(), p.priority(), p.seq()-1)
}

// checkpointLocked keeps the journal short: it writes the rows of the queues that changed first,
// and deletes the journal rows whose changes all queues' rows contain. The last journal row stays,
// since it has the store's counters.
func (s *Store) checkpointLocked(now int64) {
	j := &s.journal
	for n := 0; len(j.dirty) > 0; {
		d := j.dirty[0]
		if s.isDirtyLocked(d) {
			if j.total <= j.most || n == maxRows {
				break
			}
			s.writeQueueLocked(d.id, now)
			n++
		}
		j.dirty = j.dirty[1:]
	}
	needed := j.no
	if len(j.dirty) > 0 {
		needed = j.dirty[0].since
	}
	for ; j.first < needed; j.first++ {
		s.txn.b.Delete(countKey(journalRow, j.first), nil)
		j.total -= int(j.sizes[0])
		j.sizes = j.sizes[1:]
	}
}

// settleLocked writes the rows of all queues that the journal has changes of, so that the next Open
// loads none for that. Where the disk is full, the journal keeps them.
func (s *Store) settleLocked() {
	s.journal.most = 0
	for len(s.journal.dirty) > 0 && s.beginLocked() == nil {
		s.txn.trims = true
		if s.commitLazilyLocked() != nil {
			return
		}
	}
}

func (s *Store) isDirtyLocked(d dirtyQueue) bool {
	return s.base.Sched.Exists(d.id) && s.queueAt(d.id).dirtySince == d.since
}

// count counts a new document (by is 1) or a removed one (by is -1).
func (s *Store) count(id uint32, state queuesched.State, by int32) {
	if by > 0 {
		s.base.Sched.Count(id, state)
	} else {
		s.base.Sched.Uncount(id, state)
	}
	q := s.markDirty(id)
	if state == queuesched.Completed {
		q.completed += by
	} else {
		q.scheduled += by
	}
}

// move counts a document that was open and is completed, or the reverse.
func (s *Store) move(id uint32, from, to queuesched.State) { s.moveSome(id, from, to, 1) }

func (s *Store) moveSome(id uint32, from, to queuesched.State, n uint32) {
	s.base.Sched.MoveSome(id, from, to, n)
	q := s.markDirty(id)
	by := int32(n)
	if to != queuesched.Completed {
		by = -by
	}
	q.completed += by
	q.scheduled -= by
}
