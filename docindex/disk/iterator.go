package disk

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/embedded"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
)

// queueIterator iterates over the scheduled documents of a queue in their order, without those in
// transit. It begins with the backfill range, which has the documents that were scheduled before
// the cursor, and continues at the cursor. It moves the cursor past the documents that it has
// handed out, so that the next iterator does not read them again. In a queue with branches, the
// branches take turns with the documents that are in no branch; see inTurn. An iterator is valid
// while the caller holds the store's lock.
type queueIterator struct {
	docs         *documents
	it           *pebble.Iterator
	id           uint32
	q            *queue
	cursor       *place // documents up to it were handed out
	host         bool   // the queue has several hosts: each document's host is checked
	inBackfill   bool   // it is in the queue's backfill range
	done         bool
	skipped      bool  // it has skipped a document, so the cursor stays before that
	skippedDue   int64 // when the first document that was skipped is due, ms
	left         int   // how many documents it may still skip
	purgesLeft   int   // how many documents of stopped crawls it may still skip
	purgedBehind int   // how many documents of stopped crawls are behind the cursor now
	more         bool  // another hold of the lock will get further
	key          []byte
	limit        []byte

	table    *shapes.Table[place] // nil: the queue has no branches
	inBranch uint32               // the branch of the current document; 0: it waits in none
	branch   uint32               // of an iterator over a branch: its number; 0: it is over no branch
	branches *queueIterator       // over the branch that was looked at last; nil: none was

	at   place // of the current document; next sets this and the following
	name name
	plan plan
	on   string // its host
}

// maxSkipped is how many documents an iterator skips in a queue with several hosts before it gives
// up the queue.
const maxSkipped = 64

// maxSkips is how many documents of stopped crawls an iterator skips under one lock, which takes
// some ms. The cursor moves past them.
const maxSkips = 5000

// iterate prepares w for a queue.
func (x *documents) iterate(w *queueIterator, id uint32) error {
	if err := w.open(x, id); err != nil {
		return err
	}
	table, err := x.queues.branchesOf(id)
	if err != nil {
		return err
	}
	w.table, w.cursor, w.inBackfill = table, &w.q.cursor, w.q.backfill.open
	if w.branches != nil {
		w.branches.branch = 0
	}
	w.seek()
	return nil
}

// open prepares w for a queue, except for where it begins.
func (w *queueIterator) open(x *documents, id uint32) error {
	if w.it == nil {
		it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: []byte{planRow}, UpperBound: []byte{planRow + 1}})
		if err != nil {
			return x.db.fail(err)
		}
		w.it, w.purgesLeft = it, maxSkips
	}
	w.docs, w.id, w.q, w.inBranch = x, id, x.queues.at(id), 0
	w.q.touched = true
	w.host, w.done, w.skipped = x.queues.sched.AnyHost(id), false, false
	w.skippedDue, w.left = queuesched.Never, maxSkipped
	return nil
}

// close ends w and returns what failed.
func (w *queueIterator) close() error {
	if w.it == nil {
		return nil
	}
	err := w.it.Close()
	w.it = nil
	if w.branches != nil {
		err = errors.Join(err, w.branches.close())
	}
	if err != nil {
		return w.docs.db.fail(err)
	}
	return nil
}

// seek goes to the beginning of the backfill range, or to the cursor.
func (w *queueIterator) seek() {
	if w.inBackfill {
		w.key = planKey(w.key[:0], w.q.no, &w.q.backfill.from)
		w.limit = append(planKey(w.limit[:0], w.q.no, &w.q.backfill.to), 0)
	} else {
		w.key = append(planKey(w.key[:0], w.q.no, w.cursor), 0)
		w.limit = append(w.limit[:0], numberEnd(planRow, w.q.no)...)
	}
	if w.branch != 0 {
		next := newBranchPlace(w.branch+1, 0)
		w.limit = planKey(w.limit[:0], w.q.no, &next)
	}
	w.it.SeekGEWithLimit(w.key, w.limit)
}

// next goes to the first document that is due and may be handed out to a consumer.
func (w *queueIterator) next(consumer queuesched.Consumer, now int64) bool {
	w.inBranch = 0
	if w.table != nil {
		return w.inTurn(consumer, now)
	}
	return w.available(consumer, now)
}

// available is next for one branch, or for what waits in none.
func (w *queueIterator) available(consumer queuesched.Consumer, now int64) bool {
	for w.row() {
		due := embedded.DueMS(w.at.due())
		if due > now {
			w.skippedDue = min(w.skippedDue, due)
			w.done = true
			return false
		}
		if !w.host {
			return true
		}
		w.on = string(docindex.HostOf(w.plan.url))
		if w.docs.queues.sched.HostAvailable([]byte(w.on), consumer, now) {
			return true
		}
		w.skippedDue = min(w.skippedDue, due)
		w.skipped = true
		if w.left--; w.left == 0 {
			w.done = true
			return false
		}
		w.it.NextWithLimit(w.limit)
	}
	return false
}

// took records that the current document is in transit now.
func (w *queueIterator) took() {
	if w.inBranch == 0 {
		w.pass()
		return
	}
	w.branches.pass()
	w.table.Took(w.inBranch)
}

// pass moves the cursor past the current row, and goes to the next row.
func (w *queueIterator) pass() {
	w.mark()
	w.it.NextWithLimit(w.limit)
}

// due returns when the first document of the queue that is not in transit is due.
func (w *queueIterator) due() int64 {
	if !w.done && w.row() {
		w.skippedDue = min(w.skippedDue, embedded.DueMS(w.at.due()))
	}
	if w.skippedDue > 0 && w.table != nil && w.anyBranch() {
		return 0
	}
	return w.skippedDue
}

// row goes to the next document that is not in transit, which may be the current one.
func (w *queueIterator) row() bool {
	for !w.done {
		if !w.it.Valid() {
			w.turn()
			continue
		}
		if !w.read() {
			return false
		}
		switch {
		case !w.docs.crawls.isStopped(w.plan.member):
			if w.name = w.docs.namer.nameOfPlan(w.q.no, &w.plan); w.docs.transits.of(&w.name) == 0 {
				return true
			}
		case w.purgesLeft == 0:
			w.skippedDue, w.done = min(w.skippedDue, embedded.DueMS(w.at.due())), true
			w.more = w.purgedBehind >= maxSkips/2 // or else the next hold is no further than this one
			return false
		default:
			if w.purgesLeft--; !w.skipped {
				w.purgedBehind++
			}
		}
		w.pass()
	}
	return false
}

// turn continues at the cursor once the backfill range is done.
func (w *queueIterator) turn() {
	if !w.inBackfill {
		w.done = true
		return
	}
	if !w.skipped {
		w.q.backfill = window{}
	}
	w.inBackfill, w.skipped = false, false
	w.seek()
}

// mark moves the cursor past the current row.
func (w *queueIterator) mark() {
	switch {
	case w.skipped:
	case !w.inBackfill:
		*w.cursor = w.at
	default:
		w.q.backfill.from = w.at
	}
}

// read decodes the current row.
func (w *queueIterator) read() bool {
	key := w.it.Key()
	value, err := w.it.ValueAndErr()
	if err == nil && len(key) != 1+4+placeLen {
		err = errRow
	}
	if err == nil {
		copy(w.at[:], key[1+4:])
		w.plan, err = readPlan(value)
	}
	if err != nil {
		w.docs.db.fail(err)
		w.done = true
		return false
	}
	return true
}

// departure returns the transit of the current document.
func (w *queueIterator) departure(consumer queuesched.Consumer) transit {
	t := transit{name: w.name, queue: w.id, created: w.plan.created, member: w.plan.member, at: w.at,
		consumer: consumer}
	t.setText(&w.plan)
	if w.host {
		t.host = w.on
	}
	return t
}
