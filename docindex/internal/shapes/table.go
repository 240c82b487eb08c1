package shapes

import "slices"

// Bounds of a table.
const (
	maxBranches = 1000 // shapes with a branch of their own; the rest shares one more
	enough      = 4    // a queue has branches once so many of its documents are scheduled
)

// Each path has a cost, of which a branch keeps the binary logarithm. It begins at usualCost. A page
// that brings new URLs of another path sets the logarithm of its own path to 0. A page that brings new
// URLs of its own path and no others adds costStep to it, up to mostCost. Each pattern of traps in a
// shape adds trapCost for that shape alone.
const (
	usualCost = 4
	costStep  = 2
	mostCost  = 8
	trapCost  = 2

	costlyPages = 8 // how many pages of the budget a page counts as whose path has mostCost
)

// branch is the documents of a shape. The shapes of one path, which differ in their query keys,
// have together no more turns than one shape has. T is the store's data of the branch.
type branch[T any] struct {
	hash  uint64 // of the shape; 0: the branch of the rest
	path  uint64 // of the shape's path
	first uint16 // number of the first branch of its path, which has the next two for all of them
	same  uint16 // branches of the path
	kind  uint32 // of the shape
	cost  uint8  // binary logarithm of the cost of the path, without traps
	traps uint8  // patterns of traps
	of    T
}

// Table is the branches of a queue, by numbers from 1 on. Branches with something take turns: next
// is the one whose last document's cost has passed (start-time fair queueing, Goyal, Vin and Cheng
// 1996).
type Table[T any] struct {
	now      int64 // the turn of the branch that was served last
	branches []branch[T]
	turns    []int64  // of each: when the cost of its last document has passed; see idle
	byHash   []uint16 // numbers of branches, by their hashes; of equal ones the first one first
	counted  int      // of branches, those that Tables counts
	page     uint64   // whose links came last, as a hash
	was      uint8    // cost of its path before
	own      bool     // it brought its own shape
	other    bool     // it brought another one
}

// idle is added to the turn of a branch that has nothing.
const idle = 1 << 62

// Of returns the store's data of a branch.
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
		hash: s.hash, path: s.path, kind: s.kind, traps: s.traps, cost: usualCost,
		first: uint16(t.Len() + 1), same: 1,
	}
	start := t.now - 1<<usualCost // its turn is now
	for i := range t.branches {
		if one := &t.branches[i]; one.path == s.path {
			t.change(one.first, func(first *branch[T]) { first.same++ })
			l.first, start = one.first, t.now
			break
		}
	}
	at := t.search(s.hash)
	for at < len(t.byHash) && t.branches[t.byHash[at]-1].hash == s.hash {
		at++
	}
	t.branches = append(t.branches, l)
	t.turns = append(t.turns, start+t.cost(&l)+idle)
	t.byHash = slices.Insert(t.byHash, at, uint16(t.Len()))
}

// cost returns the cost of a document of a branch.
func (t *Table[T]) cost(l *branch[T]) int64 {
	first := l
	if int(l.first) <= len(t.branches) {
		first = &t.branches[l.first-1]
	}
	return int64(first.same) << (first.cost + trapCost*l.traps)
}

// change changes the cost of the documents of a path, which the path's first branch has.
func (t *Table[T]) change(first uint16, do func(first *branch[T])) {
	for i := range t.branches {
		if one := &t.branches[i]; one.first == first {
			t.turns[i] -= t.cost(one)
		}
	}
	do(&t.branches[first-1])
	for i := range t.branches {
		if one := &t.branches[i]; one.first == first {
			t.turns[i] += t.cost(one)
		}
	}
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
func (t *Table[T]) Mark(no uint32, some bool) {
	switch turn := &t.turns[no-1]; {
	case some && isIdle(*turn):
		*turn -= idle
	case !some && !isIdle(*turn):
		*turn += idle
	}
}

func isIdle(turn int64) bool { return turn >= idle/2 }

// Some reports whether a branch may have something.
func (t *Table[T]) Some() bool {
	return slices.ContainsFunc(t.turns, func(turn int64) bool { return !isIdle(turn) })
}

// Turn is the place of a branch in the order of turns. The zero value is before all.
type Turn struct {
	at     int64
	Branch uint32 // 0: there is none
}

// Next returns the turn after one, of the branches that may have something. It changes nothing:
// call Took for the branch that was served. A branch cannot save turns up while it has nothing.
func (t *Table[T]) Next(after Turn) (next Turn) {
	first := int64(idle / 2)
	for i, turn := range t.turns {
		if turn >= first {
			continue
		}
		one := Turn{t.due(turn), uint32(i + 1)}
		if after.Branch != 0 && !after.before(one) {
			continue
		}
		if first, next = turn, one; one.at <= t.now {
			break // none is before
		}
	}
	return next
}

func (a Turn) before(b Turn) bool { return a.at < b.at || a.at == b.at && a.Branch < b.Branch }

func (t *Table[T]) due(turn int64) int64 {
	if faulty(FaultTurns) {
		return 0 // the first one goes
	}
	return max(t.now, turn)
}

// Took records that a branch has given something.
func (t *Table[T]) Took(no uint32) {
	was := t.turns[no-1]
	if t.Mark(no, true); faulty(FaultTurns) {
		t.now = 0
	} else {
		t.now = max(t.now, t.turns[no-1])
	}
	t.turns[no-1] = t.now + t.cost(&t.branches[no-1])
	t.Mark(no, !isIdle(was))
}

// Pages returns how many pages of its domain's budget a page of a branch counts as.
func (t *Table[T]) Pages(no uint32) uint32 {
	if t.branches[t.branches[no-1].first-1].cost < mostCost {
		return 1
	}
	return costlyPages
}

// learn changes the cost of a shape, a page of which has brought a new document of a branch. It reports
// whether the cost has grown.
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
		t.page, t.was, t.own, t.other = page, l.cost, false, false
	}
	switch {
	case t.other:
	case t.branches[brought-1].kind != t.branches[no-1].kind:
		t.other = true
		t.setCost(l, 0)
	case !t.own:
		t.own = true
		t.setCost(l, min(t.was+costStep, mostCost))
		return l.cost > t.was
	}
	return false
}

// setCost sets the cost of a path, which its first branch has.
func (t *Table[T]) setCost(first *branch[T], cost uint8) {
	if first.cost != cost {
		t.change(first.first, func(first *branch[T]) { first.cost = cost })
	}
}
