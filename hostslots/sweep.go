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
	w.idle = newRecordList(&r.hosts, func(h *host) *link { return &h.idle })
	w.empty = newRecordList(&r.groups, func(g *group) *link { return &g.empty })
}

// add adds a new host to the idle ones.
func (w *sweeper) add(hostID uint32) {
	w.idle.pushBack(hostID)
	w.idleHosts++
}

// update adds a host to the idle ones or removes it, as it is.
func (w *sweeper) update(hostID uint32, h *host) {
	idle := !h.busy()
	if idle == w.idle.has(hostID) {
		return
	}
	if idle {
		w.add(hostID)
	} else {
		w.idle.remove(hostID)
		w.idleHosts--
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
	owed := h.carried.notBefore > now || h.blocked != 0
	if owed || h.group != 0 && s.isOwed(now, s.groups.At(h.group)) {
		s.sweeper.idle.moveToBack(id)
		return
	}
	s.Host(id).Unbind(now)
	s.sweeper.idle.remove(id)
	s.sweeper.idleHosts--
	for o := h.origins; o != 0; {
		s.sweeper.forgotten = append(s.sweeper.forgotten, o)
		o = s.removeOrigin(o)
	}
	s.removeHost(id)
}

// sweepGroup forgets a group without hosts, unless that would shorten a wait.
func (s *Slots) sweepGroup(now time.Duration, id uint32) {
	g := s.groups.At(id)
	s.sweeper.empty.remove(id)
	if s.isOwed(now, g) {
		s.sweeper.empty.pushBack(id)
		return
	}
	s.pacer.forget(id, &g.pace)
	s.removeGroup(id)
}

// isOwed reports whether a group must stay known: it is in use, or is to be left alone for some
// time.
func (s *Slots) isOwed(now time.Duration, g *group) bool {
	return g.open() > 0 || g.incoming > 0 || g.lease.state != unleased || s.pacer.owed(now, &g.pace)
}
