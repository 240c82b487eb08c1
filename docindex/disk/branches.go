package disk

import (
	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
)

// A scheduled document that is a link on a page waits in the branch of its URL's shape. Its place
// has the branch's number. While the queue is in memory, each branch has a cursor: the store has
// handed out all documents up to it. If a document comes back, the store moves the cursor before
// it. The row of an evicted queue has its branches, each with the sequence number of its cursor.

// seqOf returns the sequence number of a branch's cursor for the queue's row; 0: no document was handed out.
func seqOf(cursor *place) uint64 {
	if *cursor == (place{}) {
		return 0
	}
	return cursor.seq()
}

// placeOfSeq is the reverse of seqOf.
func placeOfSeq(branch uint32, seq uint64) place {
	if seq == 0 {
		return place{}
	}
	return newBranchPlace(branch, seq)
}

// openDocs tells package shapes how many documents of a queue are open.
func (x *queueTable) openDocs(queue uint32) (scheduled, inTransit uint64) {
	n := x.sched.QueueTotal(queue).URLs
	return n[queuesched.Scheduled], n[queuesched.InTransit]
}

// branchesOf returns the branches of a queue, or nil if it has none. If the queue's cursor is not
// set yet, as after Open, it reads from the rows which branches there are.
func (x *queueTable) branchesOf(queue uint32) (*shapes.Table[place], error) {
	q := x.at(queue)
	if q.cursor == (place{}) {
		if err := x.readBranches(queue, q.no); err != nil {
			return nil, x.db.fail(err)
		}
		if q.cursor = plainPlace; x.branches.Of(queue) != nil {
			x.sched.SetBranched(queue, x.now())
		}
	}
	return x.branches.Of(queue), nil
}

// readBranches reads the first row of each branch of a queue: its URL has the branch's shape.
func (x *queueTable) readBranches(queue, no uint32) (err error) {
	it, err := x.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(planRow, no),
		UpperBound: planKey(nil, no, &plainPlace)})
	if err != nil {
		return err
	}
	defer func() {
		if closing := it.Close(); err == nil {
			err = closing
		}
	}()
	for more := it.First(); more; {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		body, err := readPlan(value)
		if err != nil || len(it.Key()) != planKeyLen {
			return errRow
		}
		at := place(it.Key()[planKeyLen-placeLen:])
		x.restoreBranch(queue, at.branch(), shapes.Of(body.url))
		next := newBranchPlace(at.branch()+1, 0)
		more = it.SeekGE(planKey(nil, no, &next))
	}
	return it.Error()
}

// restoreBranch gives the branch for a shape its number back, and marks it as one that may have
// documents.
func (x *queueTable) restoreBranch(queue, no uint32, shape shapes.Shape) {
	t := x.branches.Of(queue)
	if t == nil {
		t = x.branches.Make(queue)
	}
	t.Restore(no, shape)
	t.Mark(no, true)
}

// enterBranch returns the number of the branch for a new document, or 0 if it waits in none.
func (x *queueTable) enterBranch(
	queue uint32, p *docindex.Put, host []byte, now int64,
) (branch uint32, err error) {
	if len(p.Page) == 0 {
		return 0, nil
	}
	if _, err := x.branchesOf(queue); err != nil {
		return 0, err
	}
	branch, _ = x.branches.Enter(queue, p, host, x.openDocs)
	if branch != 0 {
		x.sched.SetBranched(queue, now)
	}
	return branch, nil
}

// enqueueInBranch makes sure that iterators over the queue reach a place in a branch.
func (x *queueTable) enqueueInBranch(queue uint32, p *place) {
	if x.at(queue).cursor == (place{}) {
		return // branchesOf will read it from the rows
	}
	t := x.branches.Of(queue)
	if t == nil {
		t = x.branches.Make(queue)
	}
	t.Reach(p.branch())
	if c := t.Of(p.branch()); !c.before(p) {
		*c = p.previous()
	}
	t.Mark(p.branch(), true)
}

// inTurn goes to the document whose turn it is: one of a branch, or one that waits in none.
func (w *queueIterator) inTurn(consumer queuesched.Consumer, now int64) bool {
	plain, rank := w.available(consumer, now), 1
	if plain {
		if rank = shapes.Rank(w.at.due(), w.at.priority()); rank < 0 {
			return true
		}
	}
	for turn := w.table.Next(shapes.Turn{}); turn.Branch != 0; turn = w.table.Next(turn) {
		l := w.ofBranch(turn.Branch)
		if l == nil {
			return false
		}
		got := l.available(consumer, now)
		w.more = w.more || l.more
		switch {
		case !got:
			l.forget()
		case rank == 0 && w.at.seq() < l.at.seq():
			return true
		default:
			w.at, w.name, w.plan, w.on, w.inBranch = l.at, l.name, l.plan, l.on, turn.Branch
			return true
		}
	}
	return plain
}

// anyBranch reports whether a document waits in a branch.
func (w *queueIterator) anyBranch() bool {
	for turn := w.table.Next(shapes.Turn{}); turn.Branch != 0; turn = w.table.Next(turn) {
		l := w.ofBranch(turn.Branch)
		if l == nil || l.row() || l.skipped || l.skippedDue < queuesched.Never {
			return true
		}
		l.forget()
	}
	return false
}

// forget marks a branch as empty if the iterator found no document in it.
func (w *queueIterator) forget() {
	if w.docs.db.failed == nil && !w.skipped && w.skippedDue == queuesched.Never {
		w.table.Mark(w.branch, false)
	}
}

// ofBranch returns the iterator over a branch; nil: the store has failed.
func (w *queueIterator) ofBranch(no uint32) *queueIterator {
	l := w.branches
	if l == nil {
		l = &queueIterator{}
		w.branches = l
	}
	if l.branch == no && l.id == w.id {
		return l
	}
	if l.open(w.docs, w.id) != nil {
		return nil
	}
	l.table, l.branch, l.cursor = w.table, no, w.table.Of(no)
	if *l.cursor == (place{}) {
		*l.cursor = newBranchPlace(no, 0)
	}
	l.inBackfill = false
	l.seek()
	return l
}
