package hostslots

// SetFailing notes that the name of a host that is not bound fails to resolve for now, or no more. The doc index is asked
// to leave it out meanwhile (Rejects), and its documents count as Counts.Failing. Bind ends that, too.
func (s *Slots) setFailing(hostID uint32, failing bool) {
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
