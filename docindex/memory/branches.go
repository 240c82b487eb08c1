package memory

import (
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"

	"urlserver/docindex"
)

// A scheduled document that is a link on a page waits in the branch of its URL's shape. Its record
// has the flag inBranch.

// openDocsLocked tells package shapes how many documents of a queue are open.
func (m *Store) openDocsLocked(queue uint32) (scheduled, inTransit uint64) {
	n := m.base.Sched.QueueTotal(queue).URLs
	return n[queuesched.Scheduled], n[queuesched.InTransit]
}

// enterBranchLocked decides whether a new document waits in a branch.
func (m *Store) enterBranchLocked(r *record, p *docindex.Put, host []byte, now int64) {
	if no, _ := m.branches.Enter(r.queue, p, host, m.openDocsLocked); no != 0 {
		r.flags |= inBranch
		m.base.Sched.SetBranched(r.queue, now)
	}
}

// branchLocked returns the branch of a record with the flag inBranch.
func (m *Store) branchLocked(r *record) (t *shapes.Table[order], no uint32) {
	if t = m.branches.Of(r.queue); t == nil {
		t = m.branches.Make(r.queue)
	}
	return t, t.Branch(m.branches.Shape(m.docs.url(r)))
}

// pushLocked schedules a record. first reports whether the record is now the first of its order.
func (m *Store) pushLocked(id uint32, r *record) (first bool) {
	c := &m.orders[r.queue].order
	if r.flags&inBranch != 0 {
		t, no := m.branchLocked(r)
		t.Mark(no, true)
		c = t.Of(no)
	}
	m.docs.push(c, id)
	return c.root == id
}

// pullLocked removes a record from its order.
func (m *Store) pullLocked(id uint32, r *record) {
	if r.flags&inBranch == 0 {
		m.docs.pull(&m.orders[r.queue].order, id)
		return
	}
	t, no := m.branchLocked(r)
	m.docs.pull(t.Of(no), id)
	t.Mark(no, t.Of(no).root != 0)
}

// inTurnLocked returns the document of a queue whose turn it is: plain, which waits in no branch,
// or one of the branches. 0: there is none.
func (m *Store) inTurnLocked(queue, plain uint32, consumer queuesched.Consumer, now int64) uint32 {
	t := m.branches.Of(queue)
	if t == nil {
		return plain
	}
	rank := 1
	if plain != 0 {
		r := m.docs.records.At(plain)
		if rank = shapes.Rank(r.due(), r.priority); rank < 0 {
			return plain
		}
	}
	for turn := t.Next(shapes.Turn{}); turn.Branch != 0; turn = t.Next(turn) {
		id := m.availableLocked(queue, t.Of(turn.Branch), consumer, now)
		switch {
		case id == 0:
		case rank == 0 && !m.docs.goesBefore(id, plain):
			return plain
		default:
			return id
		}
	}
	return plain
}
