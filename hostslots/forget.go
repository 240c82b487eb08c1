package hostslots

import "time"

const sweepSteps = 16 // records looked at a call, so that no call takes long

// Sweep forgets hosts without documents beyond the number to remember, the
// longest idle first, and groups without hosts, once nothing is owed to them. A bounded number a call; call it now
// and then.
func (s *Slots) sweep(now time.Duration) {
	for range sweepSteps {
		if s.idlers <= s.cfg.Remember || s.idle.head == 0 {
			break
		}
		s.sweepHost(now, s.idle.head)
	}
	for range sweepSteps {
		if s.empties.head == 0 {
			break
		}
		s.sweepGroup(now, s.empties.head)
	}
	for {
		id, due, ok := s.cools.Min()
		if !ok || due > now {
			return
		}
		s.cools.Remove(id)
	}
}

// Forgotten appends the origins that are known no longer since the last call;
// their numbers may be given out again.
func (s *Slots) Forgotten(to []uint32) []uint32 {
	to = append(to, s.forgot...)
	s.forgot = s.forgot[:0]
	return to
}

func (s *Slots) sweepHost(now time.Duration, id uint32) {
	h := s.hosts.At(id)
	owed := h.carry > now || h.blocked != 0
	if h.group != 0 {
		owed = owed || s.groups.At(h.group).owed(now, s)
	}
	if owed {
		s.byIdle.remove(&s.idle, id)
		s.byIdle.pushBack(&s.idle, id)
		return
	}
	s.unbind(now, id)
	s.byIdle.remove(&s.idle, id)
	s.idlers--
	for o := h.origins; o != 0; {
		o = s.forgetOrigin(o)
	}
	s.hostByName.Remove(h.hash, id)
	s.text.Free(h.name, int(h.nameLen))
	delete(s.addrs, id)
	s.hosts.Free(id)
}

func (s *Slots) forgetOrigin(id uint32) (next uint32) {
	o := s.origins.At(id)
	next = o.next
	s.originByKey.Remove(o.hash, id)
	s.text.Free(o.text, int(o.textLen))
	s.origins.Free(id)
	s.forgot = append(s.forgot, id)
	return next
}

func (s *Slots) sweepGroup(now time.Duration, id uint32) {
	g := s.groups.At(id)
	s.byEmpty.remove(&s.empties, id)
	if g.owed(now, s) {
		s.byEmpty.pushBack(&s.empties, id)
		return
	}
	s.swept = max(s.swept, g.last)
	s.cools.Remove(id)
	delete(s.groupByAddr, g.addr)
	delete(s.names, g.addr)
	s.groups.Free(id)
}

// owed reports whether forgetting g would shorten a wait that it is due.
func (g *group) owed(now time.Duration, s *Slots) bool {
	return g.active() > 0 || g.expects > 0 || g.claim != unclaimed || s.due(g) > now || g.backoff > 0 && now < g.last+backoffMemory
}
