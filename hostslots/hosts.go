package hostslots

import "time"

// HostSummary is one host, without anything that costs more than a look at its group.
type HostSummary struct {
	Name         []byte        // good until the host is forgotten
	Held         int           // its documents, those at spiders among them
	Next         time.Duration // no request before
	BlockedUntil time.Duration // by the operator; 0: it is not
	RuleBlocked  bool          // by its limits
}

// Summary returns what a list of hosts shows of the host.
func (h Host) Summary() HostSummary {
	r := h.record()
	v := HostSummary{Name: h.Name(), Held: int(r.docs), Next: r.carry, BlockedUntil: r.blocked, RuleBlocked: r.limits.Blocked}
	if r.group != 0 {
		v.Next = max(v.Next, h.s.due(h.s.groups.At(r.group)))
	}
	return v
}

// HostOfDoc returns the host of document doc.
func (s *Slots) HostOfDoc(doc uint32) uint32 { return s.HostOf(s.docs.At(doc).origin) }

// RuleBlocked returns hosts with documents that are blocked by their limits, at most so many. more: there are others.
func (s *Slots) RuleBlocked(most int) (names []string, more bool) {
	for id := s.barred.head; id != 0; id = s.hosts.At(id).bar.next {
		if len(names) == most {
			return names, true
		}
		names = append(names, string(s.hostName(id)))
	}
	return names, false
}
