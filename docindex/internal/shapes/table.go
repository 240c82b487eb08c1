package shapes

import "slices"

// Bounds of a table.
const (
	maxBranches = 1000 // shapes with a branch of their own; the rest shares one more
	enough      = 4    // a queue has branches once so many of its documents are scheduled
)

// How dear a shape is, in powers of two of its cost. It begins at usual. A page that brings new
// URLs of another path makes its shape the cheapest; one that brings new ones of its own path and
// no others makes it dearer. Patterns of traps come on top.
const (
	usual   = 4
	dearer  = 2
	dearest = 8
	pattern = 2

	dearPages = 8 // what a page of a shape that was learned to be dearest counts as
)

// branch is the documents of a shape. The shapes of one path, which differ in their query keys,
// have together no more turns than one shape has. T is what a store keeps of it.
type branch[T any] struct {
	hash  uint64 // of the shape; 0: the branch of the rest
	path  uint64 // of the shape's path
	start int64  // when it had its last turn, in the time of Table.now
	first uint16 // number of the first branch of its path, which has the next two for all of them
	same  uint16 // branches of the path
	kind  uint32 // of the shape
	dear  uint8  // what was learned: how dear they are
	traps uint8  // patterns of traps
	some  bool   // it may have something
	of    T
}

// Table is the branches of a queue, by numbers from 1 on. Branches with something take turns: next
// is the one whose last document's cost has passed (start-time fair queueing, Goyal, Vin and Cheng
// 1996).
type Table[T any] struct {
	now      int64 // the turn of the branch that was served last
	branches []branch[T]
	byHash   []uint16 // numbers of branches, by their hashes; of equal ones the first one first
	counted  int      // of branches, those that Tables counts
	page     uint64   // whose links came last, as a hash
	was      uint8    // how dear its shape was before
	own      bool     // it brought its own shape
	other    bool     // it brought another one
}

// Of returns what the store keeps of a branch.
func (t *Table[T]) Of(no uint32) *T { return &t.branches[no-1].of }

// Len returns the number of branches.
func (t *Table[T]) Len() uint32 { return uint32(len(t.branches)) }

// find returns the number of the branch for a shape, or 0.
func (t *Table[T]) find(hash uint64) uint32 {
	at := t.search(hash)
	if at == len(t.byHash) || t.branches[t.byHash[at]-1].hash != hash {
		return 0
	}
	return uint32(t.byHash[at])
}

// search returns the first place in byHash of a hash that is not smaller.
func (t *Table[T]) search(hash uint64) int {
	from, to := 0, len(t.byHash)
	for from < to {
		middle := (from + to) / 2
		if t.branches[t.byHash[middle]-1].hash < hash {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// Branch returns the number of the branch for a shape. It adds the branch if there is none.
func (t *Table[T]) Branch(s Shape) uint32 {
	no := t.find(s.hash)
	if no == 0 && len(t.branches) >= maxBranches {
		s = Shape{}
		no = t.find(0)
	}
	if no != 0 {
		return no
	}
	t.add(s)
	return t.Len()
}

// add adds a branch for a shape.
func (t *Table[T]) add(s Shape) {
	l := branch[T]{
		hash: s.hash, path: s.path, kind: s.kind, traps: s.traps, dear: usual,
		first: uint16(t.Len() + 1), same: 1, start: t.now - 1<<usual, // its turn is now
	}
	for i := range t.branches {
		if one := &t.branches[i]; one.path == s.path {
			first := &t.branches[one.first-1]
			first.same++
			l.first, l.start = one.first, t.now
			break
		}
	}
	at := t.search(s.hash)
	for at < len(t.byHash) && t.branches[t.byHash[at]-1].hash == s.hash {
		at++
	}
	t.branches = append(t.branches, l)
	t.byHash = slices.Insert(t.byHash, at, uint16(t.Len()))
}

// Reach makes a number that of a branch. Branches that it adds have no shape.
func (t *Table[T]) Reach(no uint32) {
	for t.Len() < no {
		t.add(Shape{hash: none - uint64(t.Len()), path: none - uint64(t.Len())})
	}
}

// none and the numbers directly below it are the hashes of branches that no shape has.
const none = ^uint64(0)

// Restore adds a branch with a number for a shape. Numbers come in their order.
func (t *Table[T]) Restore(no uint32, s Shape) {
	t.Reach(no - 1)
	if no > maxBranches {
		s = Shape{}
	}
	if t.Len() < no {
		t.add(s)
	}
}

// Mark says whether a branch may have something.
func (t *Table[T]) Mark(no uint32, some bool) { t.branches[no-1].some = some }

// Some reports whether a branch may have something.
func (t *Table[T]) Some() bool {
	for i := range t.branches {
		if t.branches[i].some {
			return true
		}
	}
	return false
}

// Turn is the place of a branch in the order of turns. The zero value is before all.
type Turn struct {
	at     int64
	Branch uint32 // 0: there is none
}

// Next returns the turn after one, of the branches that may have something. It changes nothing:
// call Took for the branch that was served.
func (t *Table[T]) Next(after Turn) (next Turn) {
	for i := range t.branches {
		one := Turn{t.due(&t.branches[i]), uint32(i + 1)}
		if t.branches[i].some && (after.Branch == 0 || after.before(one)) && (next.Branch == 0 || one.before(next)) {
			next = one
		}
	}
	return next
}

func (a Turn) before(b Turn) bool { return a.at < b.at || a.at == b.at && a.Branch < b.Branch }

// due returns when a branch has its turn. A branch cannot save turns up while it has nothing.
func (t *Table[T]) due(l *branch[T]) int64 {
	if faulty(faultTurns) {
		return 0 // the first one goes
	}
	first := &t.branches[l.first-1]
	return max(t.now, l.start+int64(first.same)<<(first.dear+pattern*l.traps))
}

// Took records that a branch has given something.
func (t *Table[T]) Took(no uint32) {
	l := &t.branches[no-1]
	t.now = t.due(l)
	l.start = t.now
}

// Pages returns how many pages of its domain's budget a page of a branch counts as.
func (t *Table[T]) Pages(no uint32) uint32 {
	if t.branches[t.branches[no-1].first-1].dear < dearest {
		return 1
	}
	return dearPages
}

// learn takes that a page of a shape has brought a new document of a branch. It reports whether the
// shape is dearer now.
func (t *Table[T]) learn(page uint64, of Shape, brought uint32) bool {
	no := t.find(of.hash)
	if no == 0 {
		no = t.find(0)
	}
	if no == 0 {
		return false
	}
	l := &t.branches[t.branches[no-1].first-1]
	if t.page != page {
		t.page, t.was, t.own, t.other = page, l.dear, false, false
	}
	switch {
	case t.other:
	case t.branches[brought-1].kind != t.branches[no-1].kind:
		t.other, l.dear = true, 0
	case !t.own:
		t.own, l.dear = true, min(t.was+dearer, dearest)
		return l.dear > t.was
	}
	return false
}
