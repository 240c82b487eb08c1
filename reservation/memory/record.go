package memory

import (
	"container/heap"
	"math"
)

// record is all that is known of a name: as a host, as a group, or both, where a host is its own group.
type record struct {
	name  string
	id    uint32   // its number in the heaps
	next  int64    // nobody gets it before
	locks []*lock  // the reservations that cover it; nobody gets it while there is one
	first [1]*lock // locks, as long as there is one at most

	// As a host.
	added   bool
	due     int64   // when there is something to do
	lock    *lock   // the reservation that it is busy under
	alias   *record // or nil
	bound   *record // or nil
	boundTo int64   // when the binding ends
	group   *record // whose member it is, nil while it is none
	place   int     // among those members

	// As a group.
	members     members    // the hosts that may be served when the group may
	only        [1]*record // members, as long as there is one at most
	hosts       []string   // of the alias
	bounds      int        // hosts bound to it, also those whose binding has ended
	ready       bool       // it stands in the list of the ready
	after, fore *record
}

// lock is a live reservation.
type lock struct {
	token  uint64
	id     uint32 // its number in the heap of leases
	holder string
	host   *record
	group  *record // that the host was reserved in
	end    int64
	covers []*record
	few    [2]*record // covers, as long as they are so few
}

// key is when a host may be served as far as it goes itself.
func (r *record) key() int64 { return max(r.due, r.next) }

// time is when a group may be served; never, without members.
func (r *record) time() int64 {
	if len(r.members) == 0 || len(r.locks) > 0 {
		return math.MaxInt64
	}
	return max(r.next, r.members[0].key())
}

// forgettable tells if nothing would be lost with the record at time now.
func (r *record) forgettable(now int64) bool {
	return !r.added && r.next <= now && len(r.locks) == 0 && r.alias == nil && len(r.hosts) == 0 &&
		(r.bound == nil || r.boundTo <= now) && r.bounds == 0 && len(r.members) == 0
}

func (r *record) covered(l *lock) bool {
	for _, have := range r.locks {
		if have == l {
			return true
		}
	}
	return false
}

// members is a heap of hosts, by key and then by number.
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

// leave ends that.
func (h *record) leave() {
	heap.Remove(&h.group.members, h.place)
	h.group = nil
}

// list is first in, first out; anyone in it can be taken out.
type list struct {
	head, tail *record
	len        int
}

func (l *list) push(r *record) {
	r.ready, r.fore, r.after = true, l.tail, nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.after = r
	}
	l.tail = r
	l.len++
}

func (l *list) remove(r *record) {
	if r.fore == nil {
		l.head = r.after
	} else {
		r.fore.after = r.after
	}
	if r.after == nil {
		l.tail = r.fore
	} else {
		r.after.fore = r.fore
	}
	r.ready, r.fore, r.after = false, nil, nil
	l.len--
}
