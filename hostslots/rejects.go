package hostslots

import "math"

// rejectList has the hosts that the doc index is asked to leave out of its next answer.
// Slots.docsChanged decides about groups and Slots.updateRejected about single hosts. Hosts whose
// names fail are not here but in unresolved; Slots.Rejects adds them.
type rejectList struct {
	groups     recordList[group] // full, over Config.RejectOver, or denied a lease
	hosts      recordList[host]  // that have documents, and are blocked by their limits or slow
	unrejected uint64            // how often a group or host left the list
}

const (
	// MaxRejects is how many names Rejects yields at most: some 200 KB of a request to the index.
	MaxRejects = 10_000

	ordinaryHosts = 32 // of a group: the hosts beyond come last
)

func (r *rejectList) init(reg *registry) {
	r.groups = newRecordList(&reg.groups, func(g *group) *link { return &g.rejected })
	r.hosts = newRecordList(&reg.hosts, func(h *host) *link { return &h.reject })
}

// set sets whether the hosts of a group are rejected.
func (r *rejectList) set(groupID uint32, g *group, reject bool) {
	if g.isRejected == reject {
		return
	}
	if g.isRejected = reject; !reject {
		r.unrejected++
	}
	r.groups.set(groupID, reject)
}

// updateRejected puts a host into the reject list while it has documents and its limits block it,
// or it is slow.
func (s *Slots) updateRejected(hostID uint32) {
	h := s.hosts.At(hostID)
	reject := (h.ruleBlocked || h.slow) && h.docs > 0
	if reject == h.rejected {
		return
	}
	if h.rejected = reject; !reject {
		s.rejects.unrejected++
	}
	s.rejects.hosts.set(hostID, reject)
}

// setSlow changes whether a host is slow: its site has to be left alone for longer than
// Config.Patience. Slow hosts are rejected, and their documents do not count for the rejection of
// the whole group. So a site with a long Crawl-delay does not keep its neighbours out.
func (s *Slots) setSlow(hostID uint32, slow bool) {
	h := s.hosts.At(hostID)
	g := s.groups.At(h.group)
	if h.slow = slow; slow {
		g.slowDocs += h.docs
	} else {
		g.slowDocs -= h.docs
	}
	s.updateRejected(hostID)
	s.docsChanged(h.group)
}

// Rejects calls yield with the names of the hosts that should not get more documents, each once:
// those of groups with a full slot, with too many documents or without a lease, those that a rule
// blocks, those that are slow, and those whose names fail for now. If they are more than MaxRejects
// the most useful come first: hosts with documents that wait here, since the index is likely to
// have more of these; then the other hosts of these groups, ordinaryHosts of each; then the rest.
// It costs O(MaxRejects).
func (s *Slots) Rejects(yield func(name []byte)) {
	w := rejectWalk{s: s, yield: yield, names: MaxRejects, looks: 8 * MaxRejects}
	groups := &s.rejects.groups
	for g := groups.head; g != 0 && w.names > 0; g = groups.next(g) {
		for h := s.groups.At(g).rotation.head; h != 0 && w.names > 0; h = s.dispatch.places.next(h) {
			w.reject(h)
		}
	}
	for id := s.rejects.hosts.head; id != 0 && w.names > 0; id = s.rejects.hosts.next(id) {
		if g := s.hosts.At(id).group; g == 0 || !groups.has(g) {
			w.reject(id)
		}
	}
	for id := s.unresolved.failing.head; id != 0 && w.names > 0; id = s.unresolved.failing.next(id) {
		if !s.hosts.At(id).rejected {
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
		if n >= from && !w.s.hosts.At(h).inRotation {
			w.reject(h)
		}
		h = w.s.members.next(h)
	}
}
