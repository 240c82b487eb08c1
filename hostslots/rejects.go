package hostslots

import "math"

// rejectList is the hosts that the doc index is asked to leave out of its next answer, except
// those whose names fail.
type rejectList struct {
	groups      recordList[group] // full, over Config.RejectOver, or denied a lease
	ruleBlocked recordList[host]  // hosts with documents that their limits block
	unrejected  uint64            // how often a group or host left the list
}

const (
	// MaxRejects is how many names Rejects yields at most: some 200 KB of a request to the index.
	MaxRejects = 10_000

	ordinaryHosts = 32 // of a group: the hosts beyond come last
)

func (r *rejectList) init(reg *registry) {
	r.groups = newRecordList(&reg.groups, func(g *group) *link { return &g.rejected })
	r.ruleBlocked = newRecordList(&reg.hosts, func(h *host) *link { return &h.ruleBlocked })
}

// set sets whether the hosts of a group are rejected.
func (r *rejectList) set(groupID uint32, reject bool) {
	if !reject && r.groups.has(groupID) {
		r.unrejected++
	}
	r.groups.set(groupID, reject)
}

// updateRuleBlocked puts a host that its limits block into the reject list while it has documents.
func (s *Slots) updateRuleBlocked(hostID uint32) {
	h := s.hosts.At(hostID)
	reject := h.limits.Blocked && h.docs > 0
	if !reject && s.rejects.ruleBlocked.has(hostID) {
		s.rejects.unrejected++
	}
	s.rejects.ruleBlocked.set(hostID, reject)
}

// Unrejected returns how often a host, or the hosts of a group, left the reject list.
func (s *Slots) Unrejected() uint64 { return s.rejects.unrejected }

// Rejects calls yield with the names of the hosts that should not get more documents, each once:
// those of groups with a full slot, with too many documents or without a lease, those that a rule
// blocks, and those whose names fail for now. If they are more than MaxRejects the most useful come
// first: hosts with documents that wait, of which the index evidently has more; then the other
// hosts of these groups, ordinaryHosts of each; then the rest. It costs O(MaxRejects).
func (s *Slots) Rejects(yield func(name []byte)) {
	w := rejectWalk{s: s, yield: yield, names: MaxRejects, looks: 8 * MaxRejects}
	groups := &s.rejects.groups
	for g := groups.head; g != 0 && w.names > 0; g = groups.next(g) {
		for h := s.groups.At(g).rotation.head; h != 0 && w.names > 0; h = s.dispatch.rotation.next(h) {
			w.reject(h)
		}
	}
	for id := s.rejects.ruleBlocked.head; id != 0 && w.names > 0; id = s.rejects.ruleBlocked.next(id) {
		if g := s.hosts.At(id).group; g == 0 || !groups.has(g) {
			w.reject(id)
		}
	}
	for id := s.unresolved.failing.head; id != 0 && w.names > 0; id = s.unresolved.failing.next(id) {
		if !s.rejects.ruleBlocked.has(id) {
			w.reject(id)
		}
	}
	for g := groups.head; g != 0 && w.mayLook(); g = groups.next(g) {
		w.rejectMembers(s.groups.At(g), 0, ordinaryHosts)
	}
	for g := groups.head; g != 0 && w.mayLook(); g = groups.next(g) {
		if s.groups.At(g).size > ordinaryHosts {
			w.rejectMembers(s.groups.At(g), ordinaryHosts, math.MaxInt)
		}
	}
}

// rejectWalk is one call of Rejects.
type rejectWalk struct {
	s     *Slots
	yield func(name []byte)
	names int // that it may yield yet
	looks int // at hosts that it may do yet
}

func (w *rejectWalk) mayLook() bool { return w.names > 0 && w.looks > 0 }

func (w *rejectWalk) reject(hostID uint32) {
	w.names--
	w.yield(w.s.hostName(hostID))
}

// rejectMembers rejects hosts of a group that are not in its rotation: the members from one place
// to another.
func (w *rejectWalk) rejectMembers(g *group, from, to int) {
	h := g.members.head
	for n := 0; n < to && h != 0 && w.mayLook(); n++ {
		w.looks--
		if n >= from && !w.s.dispatch.rotation.has(&g.rotation, h) {
			w.reject(h)
		}
		h = w.s.members.next(h)
	}
}
