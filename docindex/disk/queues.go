package disk

import (
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
	"urlserver/internal/container/hashindex"
)

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
)

// queues has the queues in memory by the scheduler's numbers, in chunks that never move, and finds
// them by their numbers on disk. Some have branches. The records hold no pointers, so the garbage
// collector does not scan them. The zero value is empty.
type queues struct {
	chunks   []*[chunkLen]queue
	byNo     hashindex.Index
	branches shapes.Tables[place]
}

// hashOfNo is a bijection: equal hashes are of equal numbers.
func hashOfNo(no uint32) uint32 { return no * 0x9E3779B1 }

// at returns the record of a queue. The record never moves.
func (q *queues) at(id uint32) *queue { return &q.chunks[id>>chunkBits][id&(chunkLen-1)] }

// byNumber returns the scheduler's number of the queue with a number on disk; 0: it is not in memory.
func (q *queues) byNumber(no uint32) uint32 {
	return q.byNo.Find(hashOfNo(no), func(uint32) bool { return true })
}

// add enters a queue that the scheduler has just added.
func (q *queues) add(id uint32, one queue) {
	for int(id>>chunkBits) >= len(q.chunks) {
		q.chunks = append(q.chunks, new([chunkLen]queue))
	}
	*q.at(id) = one
	q.byNo.Add(hashOfNo(one.no), id)
}

// remove removes a queue.
func (q *queues) remove(id uint32) {
	q.byNo.Remove(hashOfNo(q.at(id).no), id)
	q.branches.Drop(id)
	*q.at(id) = queue{}
}

// queueTable has all queues, those that are in memory and those that are on disk alone, with the
// rows of both. It counts the queues' documents. The store's lock guards it.
type queueTable struct {
	queues
	cold    coldQueues
	journal journal
	globals globals
	before  uint32 // the last number given to a queue before Open
	keys    queueKeys
	numbers queueNumbers
	settles bool // the store is being closed

	db    *database
	txn   *txn
	sched *queuesched.Scheduler
	namer *docNamer
	now   func() int64
}

// queue is the part of a queue's state that the scheduler does not have.
type queue struct {
	no       uint32 // on disk
	due      int64  // as the scheduler knows it, ms
	cursor   place  // documents up to it were handed out, except those in backfill
	backfill window
	wake     queuesched.Moment // as in queueRecord
	wakes    uint32            // number of scheduled documents that its wake row says
	stored   bool              // it has a row
	fresh    bool              // its row is a freshRow
	hasIDs   bool
	set      bool // it has a setRow
	touched  bool // an eviction would have to write its row
	owners   bool // some of its documents may have owners

	rewrite              bool // the txn writes its row
	dirty                bool // the txn has changed it; the next two fields are the changes of its counts
	scheduled, completed int32
	served               [2]bool
	dirtySince           uint64 // the first commit that its row does not contain; 0: it contains all
}

// window is a range of places, ends included, that may have documents to hand out. The zero value
// is empty.
type window struct {
	from, to place
	open     bool
}

func (w *window) add(p *place) {
	if !w.open {
		*w = window{from: *p, to: *p, open: true}
		return
	}
	if p.before(&w.from) {
		w.from = *p
	}
	if w.to.before(p) {
		w.to = *p
	}
}

// markDirty notes that the txn changes a queue, so that the journal row has the change.
func (x *queueTable) markDirty(id uint32) *queue {
	q := x.at(id)
	if !q.dirty {
		q.dirty, q.touched = true, true
		x.txn.dirty = append(x.txn.dirty, id)
	}
	return q
}

// rewriteRow makes the txn write a queue's row.
func (x *queueTable) rewriteRow(id uint32) {
	if q := x.at(id); !q.rewrite {
		q.rewrite, q.touched = true, true
		x.txn.rewritten = append(x.txn.rewritten, id)
	}
}

// count counts a new document (by is 1) or a removed one (by is -1).
func (x *queueTable) count(id uint32, state queuesched.State, by int32) {
	if by > 0 {
		x.sched.Count(id, state)
	} else {
		x.sched.Uncount(id, state)
	}
	q := x.markDirty(id)
	if state == queuesched.Completed {
		q.completed += by
	} else {
		q.scheduled += by
	}
}

// move counts a document that was open and is completed, or the reverse.
func (x *queueTable) move(id uint32, from, to queuesched.State) { x.moveSome(id, from, to, 1) }

func (x *queueTable) moveSome(id uint32, from, to queuesched.State, n uint32) {
	x.sched.MoveSome(id, from, to, n)
	q := x.markDirty(id)
	by := int32(n)
	if to != queuesched.Completed {
		by = -by
	}
	q.completed += by
	q.scheduled -= by
}

// writeRow writes the row of a queue in memory, with the changes of the current commit. If the
// queue may be evicted, and its wake row need not move or the store is being closed, writeRow
// writes the rows as for a cold queue. Then a later eviction writes nothing, unless the queue has
// changed. Otherwise writeRow keeps the wake row if its moment is early enough.
func (x *queueTable) writeRow(id uint32, now int64) {
	q := x.at(id)
	p, ok := x.cold.evictor.mayLeave(id, now)
	if ok && (q.wake == queuesched.NoMoment || q.wake == p.at || p.at == queuesched.NoMoment || x.settles) {
		x.cold.writeRows(id, p.at, now)
		return
	}
	x.cold.leaveFresh(id)
	switch n := x.sched.Persist(id).Scheduled; {
	case n == 0:
		x.cold.setWake(id, queuesched.NoMoment, false, 0, now)
	case q.wake == queuesched.NoMoment && q.due == queuesched.Never: // all of it is in transit
		x.cold.setWake(id, 0, false, n, now)
	case queuesched.MomentOf(q.due) < q.wake && q.wake.MS() > now:
		x.cold.setWake(id, queuesched.MomentOf(q.due), false, n, now)
	}
	x.putRow(id, false, now)
	q.touched = true
}

// putRow writes a queue's row. If cold is true, the row also has what only a cold queue's row has:
// due time, cursor and branches.
func (x *queueTable) putRow(id uint32, cold bool, now int64) {
	q := x.at(id)
	q.dirtySince = 0
	r := queueRecord{
		Persisted: x.sched.Persist(id), crawl: []byte(x.sched.Crawl(id)),
		key: x.sched.Key(id), hasIDs: q.hasIDs, ownerless: !q.owners, asOf: x.journal.no, wake: q.wake,
	}
	if cold && r.Scheduled > 0 {
		r.due, r.cursor = q.due, q.first()
		if t := x.branches.Of(id); t != nil {
			r.branches = t.Append(nil, seqOf)
		}
	}
	x.txn.value = r.append(x.txn.value[:0])
	x.txn.b.Set(x.rowKey(id), x.txn.value, nil)
	q.stored = true
	if is := r.isSet(now); is != q.set {
		if q.set = is; is {
			x.txn.b.Set(numberKey(setRow, q.no), nil, nil)
		} else {
			x.txn.b.Delete(numberKey(setRow, q.no), nil)
		}
	}
	if until := x.sched.GapEnd(id); until > now { // or else a restart forgets it until the queue is loaded
		pause, gap, backoff := x.sched.HostPause(r.key)
		x.cold.keepPause(r.key, max(until, pause), gap, backoff, x.journal.no)
	}
}

// rowKey returns the key of a queue's row.
func (x *queueTable) rowKey(id uint32) []byte {
	q := x.at(id)
	if q.fresh {
		return freshKey(x.sched.CrawlNo(id), q.no)
	}
	return numberKey(queueRow, q.no)
}

// first returns a place before all scheduled documents of a queue of which none is in transit.
func (q *queue) first() place {
	if !q.backfill.open {
		return q.cursor
	}
	p := q.backfill.from
	return newPlace(p.due(), p.priority(), p.seq()-1)
}

// enqueue makes sure that the store reads a place of a queue when it is due.
func (x *queueTable) enqueue(queue uint32, p *place, now int64) {
	x.sched.CountLater(queue, embedded.DueMS(p.due()), now, 1)
	q := x.at(queue)
	q.touched = true
	switch {
	case p.branch() != 0:
		x.enqueueInBranch(queue, p)
	case !q.cursor.before(p):
		q.backfill.add(p)
	}
	if due := embedded.DueMS(p.due()); due < q.due {
		x.setDue(queue, due, now)
	}
}

func (x *queueTable) setDue(queue uint32, due, now int64) {
	q := x.at(queue)
	q.due, q.touched = due, true
	x.sched.SetDue(queue, due, now)
}

// keyRow writes the row that has the number of the queue with a key.
func (x *queueTable) keyRow(no uint32, n *name) {
	t := x.txn
	t.key = n.docKey(t.key[:0])
	t.value = binary.BigEndian.AppendUint32(t.value[:0], no)
	t.set()
	x.db.memtables.add(n)
	if x.before == 0 {
		x.keys.add(n)
	}
}

// dropRow deletes the rows of a queue, except those of its documents.
func (x *queueTable) dropRow(id uint32) {
	q := x.at(id)
	x.cold.totals[x.sched.CrawlNo(id)] = struct{}{}
	x.txn.b.Delete(x.rowKey(id), nil)
	if !q.fresh {
		x.cold.setWake(id, queuesched.NoMoment, false, 0, 0)
	}
	n := x.namer.keyName([]byte(x.sched.Crawl(id)), x.sched.Key(id))
	x.txn.b.Delete(n.docKey(nil), nil)
	x.numbers.remove(&n, x.at(id).no)
	x.db.memtables.add(&n)
	if q.set {
		x.txn.b.Delete(numberKey(setRow, q.no), nil)
	}
}

// dropDocuments deletes the documents' rows of deleted queues. It deletes neighbouring numbers as
// one range; numbers between them that no queue has belong to the range.
func (x *queueTable) dropDocuments(nos []uint32) {
	slices.Sort(nos)
	for len(nos) > 0 {
		first, last := nos[0], nos[0]
		for nos = nos[1:]; len(nos) > 0 && x.noneBetween(last, nos[0]); nos = nos[1:] {
			last = nos[0]
		}
		for _, kind := range []byte{planRow, docRow} {
			x.txn.b.DeleteRange(numberKey(kind, first), numberEnd(kind, last), nil)
		}
	}
}

// noneBetween reports whether no queue with a number between from and to has documents. It is false
// for numbers further apart than maxGap.
func (x *queueTable) noneBetween(from, to uint32) bool {
	if to-from > maxGap {
		return false
	}
	for _, kind := range []byte{planRow, docRow} {
		it, err := x.db.NewIter(&pebble.IterOptions{
			LowerBound: numberEnd(kind, from), UpperBound: numberKey(kind, to)})
		if err != nil {
			return false
		}
		some := it.First()
		if err := it.Close(); err != nil || some {
			return false
		}
	}
	return true
}

const maxGap = 64 // dropDocuments joins two ranges only if their numbers are this close
