package shapes

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A table's row has its state, and then for each branch its state. Of the turns it has how long
// ago they were.
const (
	rowOwn   = 1
	rowOther = 2
	rowHead  = 1 + 1 + 8
	rowSome  = 1 << 7 // beside the cost of a branch
)

// Append appends a table's row. kept returns the number that the row keeps of the store's data of a branch.
func (t *Table[T]) Append(dst []byte, kept func(of *T) uint64) []byte {
	flags := byte(0)
	if t.own {
		flags |= rowOwn
	}
	if t.other {
		flags |= rowOther
	}
	dst = binary.BigEndian.AppendUint64(append(dst, flags, t.was), t.page)
	for i := range t.branches {
		l := &t.branches[i]
		cost := l.cost
		turn := t.turns[i]
		if isIdle(turn) {
			turn -= idle
		} else {
			cost |= rowSome
		}
		dst = append(dst, cost, l.traps)
		dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, l.hash), l.path)
		dst = binary.AppendUvarint(binary.BigEndian.AppendUint32(dst, l.kind), uint64(l.first))
		dst = binary.AppendUvarint(binary.AppendVarint(dst, t.now-turn+t.cost(l)), kept(&l.of))
	}
	return dst
}

// Read makes the table of a queue that has none from a row. of is the reverse of the kept of
// Append. ok is false if the row is not as Append writes it.
func (s *Tables[T]) Read(queue uint32, b []byte, of func(no uint32, kept uint64) T) (ok bool) {
	if len(b) < rowHead {
		return false
	}
	t := s.Make(queue)
	t.own, t.other, t.was = b[0]&rowOwn != 0, b[0]&rowOther != 0, b[1]
	t.page = binary.BigEndian.Uint64(b[2:])
	for b = b[rowHead:]; len(b) > 0; {
		if b, ok = t.readBranch(b, of); !ok {
			s.Drop(queue)
			return false
		}
	}
	for i := range t.branches {
		t.turns[i] += t.cost(&t.branches[i])
	}
	t.byHash = make([]uint16, len(t.branches))
	for i := range t.byHash {
		t.byHash[i] = uint16(i + 1)
	}
	slices.SortStableFunc(t.byHash, func(a, b uint16) int {
		return cmp.Compare(t.branches[a-1].hash, t.branches[b-1].hash)
	})
	t.counted = len(t.branches)
	s.branches += t.counted
	return true
}

// readBranch reads the next branch, and returns the rest of the row.
func (t *Table[T]) readBranch(b []byte, of func(no uint32, kept uint64) T) (rest []byte, ok bool) {
	const fixed = 1 + 1 + 8 + 8 + 4
	no := t.Len() + 1
	if len(b) < fixed || no > maxBranches+1 {
		return nil, false
	}
	l := branch[T]{
		cost: b[0] &^ rowSome, traps: b[1], hash: binary.BigEndian.Uint64(b[2:]),
		path: binary.BigEndian.Uint64(b[10:]), kind: binary.BigEndian.Uint32(b[18:]),
	}
	some := b[0]&rowSome != 0
	b = b[fixed:]
	first, n := binary.Uvarint(b)
	ago, m := binary.Varint(b[max(n, 0):])
	kept, k := binary.Uvarint(b[max(n, 0)+max(m, 0):])
	if n <= 0 || m <= 0 || k <= 0 || first == 0 || first > uint64(no) || l.cost > mostCost {
		return nil, false
	}
	l.first, l.of = uint16(first), of(no, kept)
	t.branches, t.turns = append(t.branches, l), append(t.turns, -ago+idle)
	t.Mark(no, some)
	t.branches[first-1].same++
	return b[n+m+k:], true
}
