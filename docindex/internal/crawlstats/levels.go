package crawlstats

import "slices"

// PriorityCounts counts by priority. The zero value is empty. A few counts are a sorted slice, many
// are a map.
type PriorityCounts struct {
	few  []level
	many map[int32]uint64
}

type level struct {
	priority int32
	n        uint64
}

const maxFew = 16

// Add adds n to the count of a priority; n may be negative, as two's complement. A count of 0 is
// removed.
func (l *PriorityCounts) Add(priority int32, n uint64) {
	if l.many != nil {
		if sum := l.many[priority] + n; sum != 0 {
			l.many[priority] = sum
		} else {
			delete(l.many, priority)
		}
		return
	}
	i, found := slices.BinarySearchFunc(l.few, priority, func(a level, p int32) int { return compare(a.priority, p) })
	switch {
	case !found && len(l.few) == maxFew:
		l.many = make(map[int32]uint64, 2*maxFew)
		for _, one := range l.few {
			l.many[one.priority] = one.n
		}
		l.few = nil
		l.many[priority] = n
	case !found:
		l.few = slices.Insert(l.few, i, level{priority, n})
	case l.few[i].n+n == 0:
		l.few = slices.Delete(l.few, i, i+1)
	default:
		l.few[i].n += n
	}
}

// AddAll adds all counts of another.
func (l *PriorityCounts) AddAll(other *PriorityCounts) {
	if l.Len() == 0 && other.many == nil {
		l.few, l.many = slices.Clone(other.few), nil
		return
	}
	other.Each(l.Add)
}

func compare(a, b int32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Len returns the number of counts.
func (l *PriorityCounts) Len() int { return len(l.few) + len(l.many) }

// Of returns the count of a priority.
func (l *PriorityCounts) Of(priority int32) uint64 {
	if l.many != nil {
		return l.many[priority]
	}
	for _, one := range l.few {
		if one.priority == priority {
			return one.n
		}
	}
	return 0
}

// Each calls yield with all counts, in no order.
func (l *PriorityCounts) Each(yield func(priority int32, n uint64)) {
	for _, one := range l.few {
		yield(one.priority, one.n)
	}
	for p, n := range l.many {
		yield(p, n)
	}
}

// span returns the lowest and the highest priority with a document that is not in flight; 0 if
// there is none.
func (l *PriorityCounts) span(away *inFlightCount) (low, high int32) {
	first := true
	l.Each(func(p int32, n uint64) {
		if n == away.of(p) {
			return
		}
		if first {
			low, high, first = p, p, false
		}
		low, high = min(low, p), max(high, p)
	})
	return low, high
}
