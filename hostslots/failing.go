package hostslots

// SetFailing notes that the name of a host that is not bound fails to resolve for now, or no more. The doc index is asked
// to leave it out meanwhile (Rejects), and its documents count as Counts.Failing. Bind ends that, too.
func (s *Slots) SetFailing(hostID uint32, failing bool) {
	h := s.hosts.At(hostID)
	if h.group != 0 || h.failing == failing {
		return
	}
	h.failing = failing
	s.byMember.set(&s.failing, hostID, failing) // of no group meanwhile
	if failing {
		s.failingDocs += int(h.docs)
		return
	}
	s.failingDocs -= int(h.docs)
	s.readmitted++
}

// HostDocs is how many documents are held for a host, those at spiders among them.
func (s *Slots) HostDocs(hostID uint32) int { return int(s.hosts.At(hostID).docs) }

// Needed reports whether a host has documents, or requests of the daemon's own.
func (s *Slots) Needed(hostID uint32) bool {
	h := s.hosts.At(hostID)
	return h.docs > 0 || h.asks > 0
}
