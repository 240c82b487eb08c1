package hostslots

import "time"

// sweeper is the hosts and groups that may be forgotten.
type sweeper struct {
	idle      recordList[host] // hosts without documents, own requests and pins, longest first
	idleHosts int
	empty     recordList[group] // groups without hosts
	forgotten []uint32          // origins, since Forgotten
}

// sweepSteps is how many hosts and groups a sweep looks at, so that no call takes long.
const sweepSteps = 16

func (w *sweeper) init(r *registry) {
	w.idle = newRecordList(&r.hosts, func(h *host) *link { return &h.place })        // idle hosts are in no other place
	w.empty = newRecordList(&r.groups, func(g *group) *link { return &g.quotaUsed }) // they have no slot
}

// add adds a new host to the idle ones.
func (w *sweeper) add(hostID uint32, h *host) {
	h.isIdle = true
	w.idle.pushBack(hostID)
	w.idleHosts++
}

// update adds a host to the idle ones if it has become idle, and removes it if it is busy again.
func (w *sweeper) update(hostID uint32, h *host) {
	idle := !h.busy()
	switch {
	case idle == h.isIdle:
	case idle:
		w.add(hostID, h)
	default:
		h.isIdle = false
		w.idle.remove(hostID)
		w.idleHosts--
	}
}

// addEmpty adds a group to those without hosts. A new one has none yet.
func (w *sweeper) addEmpty(id uint32, g *group) {
	g.isEmpty = true
	w.empty.pushBack(id)
}

// updateGroup adds a group to the empty ones if its last host has left, and removes it if it has a host again.
func (w *sweeper) updateGroup(id uint32, g *group) {
	switch empty := g.members.head == 0 && g.users == 0; {
	case empty == g.isEmpty:
	case empty:
		w.addEmpty(id, g)
	default:
		g.isEmpty = false
		w.empty.remove(id)
	}
}

// sweep forgets idle hosts in excess of Config.Remember, those that were busy longest ago first,
// and groups without hosts, unless that would shorten a wait. It does a few steps a call.
func (s *Slots) sweep(now time.Duration) {
	for range sweepSteps {
		if s.sweeper.idleHosts <= s.cfg.Remember || s.sweeper.idle.head == 0 {
			break
		}
		s.sweepHost(now, s.sweeper.idle.head)
	}
	for range sweepSteps {
		if s.sweeper.empty.head == 0 {
			break
		}
		s.sweepGroup(now, s.sweeper.empty.head)
	}
	for {
		id, due, ok := s.pacer.cooldowns.Min()
		if !ok || due > now {
			return
		}
		s.pacer.cooldowns.Remove(id)
	}
}

// Forgotten appends the origins that were forgotten since the last call. Their numbers may be
// given to others.
func (s *Slots) Forgotten(to []uint32) []uint32 {
	to = append(to, s.sweeper.forgotten...)
	s.sweeper.forgotten = s.sweeper.forgotten[:0]
	return to
}

// sweepHost forgets an idle host, unless that would shorten a wait.
func (s *Slots) sweepHost(now time.Duration, id uint32) {
	h := s.hosts.At(id)
	owed := s.pacer.owed(now, &h.site, s.pacer.siteGap(h)) || h.blocked
	if h.group != 0 {
		g := s.groups.At(h.group)
		owed = owed || g.lease.state == denied || g.kind == ofSite && s.isOwed(now, h.group)
	}
	if owed {
		s.sweeper.idle.moveToBack(id)
		return
	}
	s.Host(id).Unbind(now)
	s.Host(id).SetFailing(false)
	s.sweeper.idle.remove(id)
	s.sweeper.idleHosts--
	for o := h.origins; o != 0; {
		s.sweeper.forgotten = append(s.sweeper.forgotten, o)
		o = s.removeOrigin(o)
	}
	s.pacer.setExtra(&h.site, extra{})
	s.pacer.setLimits(h, Limits{})
	s.removeHost(id)
}

// sweepGroup forgets a group without hosts, unless that would shorten a wait.
func (s *Slots) sweepGroup(now time.Duration, id uint32) {
	s.sweeper.empty.remove(id)
	if s.isOwed(now, id) {
		s.sweeper.empty.pushBack(id)
		return
	}
	s.pacer.cooldowns.Remove(id)
	s.pacer.countBackingOff(s.groups.At(id), -1)
	s.pacer.setExtra(&s.groups.At(id).pace, extra{})
	delete(s.pacer.failures, id)
	delete(s.pacer.backoffs.changed, id)
	s.removeGroup(id)
}

// isOwed reports whether a group must stay known: it is in use, or is to be left alone for some
// time.
func (s *Slots) isOwed(now time.Duration, id uint32) bool {
	g := s.groups.At(id)
	switch {
	case g.open() > 0, g.incoming > 0, g.lease.state != unleased:
		return true
	case g.kind == ofNetwork && g.cap != AddressLimits{}:
		return true
	case g.failing && now-s.pacer.failures[id].last() < backoffMemory:
		return true
	}
	return s.pacer.owed(now, &g.pace, s.pacer.groupGap(g))
}
