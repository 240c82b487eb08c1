package memory

import (
	"container/heap"
	"math"
)

// record is all that the store knows of a name: as a host, as a group, or both if a host is its own
// group.
type record struct {
	name  string
	id    uint32   // its index in byID and in the heaps
	next  int64    // nobody can lease it before, ms
	locks []*lock  // the live leases that cover it; while there is one nobody else can lease it
	first [1]*lock // storage of locks for the usual single lease

	// As a host.
	added      bool
	due        int64   // when the host is due, ms
	lock       *lock   // its lease, or nil
	alias      *record // or nil
	bound      *record // or nil
	boundUntil int64   // when the binding ends, ms
	answered   string  // the group that Bind answered, and that others may go by until the binding ends
	group      *record // the group that it is a member of; nil: none
	place      int     // index in the members of group

	// As a group.
	members              members    // hosts without lease that the group may serve
	only                 [1]*record // storage of members for the usual single host
	hosts                []string   // hosts of the alias
	bounds               int        // number of hosts bound to it, also by bindings that have expired
	ready                bool       // whether it is in the list of ready groups
	nextReady, prevReady *record
}

// lock is a live lease.
type lock struct {
	token  uint64
	id     uint32 // its index in locks and in the heap of leases
	holder string
	host   *record
	group  *record // the group of the host when it was leased
	end    int64
	covers []*record
	few    [2]*record // storage of covers for the usual one or two
}

// key returns when a host may be served, without regard to its group.
func (r *record) key() int64 { return max(r.due, r.next) }

// time returns when a group may be served: never, if it has no members or a live lease.
func (r *record) time() int64 {
	if len(r.members) == 0 || len(r.locks) > 0 {
		return math.MaxInt64
	}
	return max(r.next, r.members[0].key())
}

// forgettable reports whether the record has no information left at time now.
func (r *record) forgettable(now int64) bool {
	return !r.added && r.next <= now && len(r.locks) == 0 && r.alias == nil && len(r.hosts) == 0 &&
		(r.bound == nil || r.boundUntil <= now) && r.bounds == 0 && len(r.members) == 0
}

func (r *record) covered(l *lock) bool {
	for _, have := range r.locks {
		if have == l {
			return true
		}
	}
	return false
}

// members is a heap of hosts, by key and then by name.
type members []*record

func (m members) Len() int { return len(m) }
func (m members) Less(i, j int) bool {
	if a, b := m[i].key(), m[j].key(); a != b {
		return a < b
	}
	return m[i].name < m[j].name
}
func (m members) Swap(i, j int) {
	m[i], m[j] = m[j], m[i]
	m[i].place, m[j].place = i, j
}

func (m *members) Push(x any) {
	r := x.(*record)
	r.place = len(*m)
	*m = append(*m, r)
}

func (m *members) Pop() any {
	last := len(*m) - 1
	r := (*m)[last]
	(*m)[last] = nil
	*m = (*m)[:last]
	return r
}

// join makes h a member of g.
func (h *record) join(g *record) {
	h.group = g
	if g.members == nil {
		g.members = g.only[:0]
	}
	heap.Push(&g.members, h)
}

// leave removes h from the members of its group.
func (h *record) leave() {
	heap.Remove(&h.group.members, h.place)
	h.group = nil
}

// list is a doubly linked queue of groups. Any element can be removed.
type list struct {
	head, tail *record
}

func (l *list) push(r *record) {
	r.ready, r.prevReady, r.nextReady = true, l.tail, nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.nextReady = r
	}
	l.tail = r
}

func (l *list) remove(r *record) {
	if r.prevReady == nil {
		l.head = r.nextReady
	} else {
		r.prevReady.nextReady = r.nextReady
	}
	if r.nextReady == nil {
		l.tail = r.prevReady
	} else {
		r.nextReady.prevReady = r.prevReady
	}
	r.ready, r.prevReady, r.nextReady = false, nil, nil
}
