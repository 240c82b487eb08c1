package disk

import (
	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
)

// Documents of a queue wait in branches by the shapes of their URLs, if they are links on pages.
// The place of a document says its branch. Of each branch the cursor is in memory: documents up to
// it were handed out. If one comes back, the cursor goes back before it.

// openDocsLocked tells package shapes how many documents of a queue are open.
func (s *Store) openDocsLocked(queue uint32) (scheduled, inTransit uint64) {
	n := s.base.Sched.QueueTotal(queue).URLs
	return n[queuesched.Scheduled], n[queuesched.InTransit]
}

// tableLocked returns the branches of a queue, or nil if it has none. When a queue is looked at
// first after the store was opened, it reads from the rows which branches there are.
func (s *Store) tableLocked(queue uint32) (*shapes.Table[place], error) {
	q := s.queueAt(queue)
	if q.cursor == (place{}) {
		if err := s.readBranchesLocked(queue, q.no); err != nil {
			return nil, s.failLocked(err)
		}
		if q.cursor = plainPlace; s.queues.branches.Of(queue) != nil {
			s.base.Sched.SetBranched(queue, s.base.Now())
		}
	}
	return s.queues.branches.Of(queue), nil
}

// readBranchesLocked reads the first row of each branch of a queue: its URL has the branch's shape.
func (s *Store) readBranchesLocked(queue, no uint32) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: numberKey(planRow, no),
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
		s.branchOf(queue, at.branch(), shapes.Of(body.url))
		next := newBranchPlace(at.branch()+1, 0)
		more = it.SeekGE(planKey(nil, no, &next))
	}
	return it.Error()
}

// branchOf makes a number that of the branch for a shape in a queue, which may have something.
func (s *Store) branchOf(queue, no uint32, shape shapes.Shape) {
	t := s.queues.branches.Of(queue)
	if t == nil {
		t = s.queues.branches.Make(queue)
	}
	t.Restore(no, shape)
	t.Mark(no, true)
}

// enterBranchLocked returns the branch of a place, or 0, for a new document.
func (s *Store) enterBranchLocked(
	queue uint32, p *docindex.Put, host []byte, now int64,
) (branch uint32, err error) {
	if len(p.Page) == 0 {
		return 0, nil
	}
	if _, err := s.tableLocked(queue); err != nil {
		return 0, err
	}
	branch, _ = s.queues.branches.Enter(queue, p, host, s.openDocsLocked)
	if branch != 0 {
		s.base.Sched.SetBranched(queue, now)
	}
	return branch, nil
}

// enqueueInBranchLocked makes sure that the store reads a place in a branch.
func (s *Store) enqueueInBranchLocked(queue uint32, p *place) {
	if s.queueAt(queue).cursor == (place{}) {
		return // tableLocked will read it from the rows
	}
	t := s.queues.branches.Of(queue)
	if t == nil {
		t = s.queues.branches.Make(queue)
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

// forget notes that a branch has nothing, if so.
func (w *queueIterator) forget() {
	if w.s.failed == nil && !w.skipped && w.skippedDue == queuesched.Never {
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
	if l.open(w.s, w.id) != nil {
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
