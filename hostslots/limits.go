package hostslots

import (
	"math"
	"time"
)

// Limits are what holds for one host in place of what Config says for all; the zero value changes nothing.
type Limits struct {
	Gap        time.Duration // between two requests to its group; 0: Config.Gap
	Concurrent int           // open requests to its group, at most Config.Widest; 0: Config.Concurrent
	Blocked    bool          // nothing goes to it
}

// Restrict puts limits on a host, bound or not. Its group obeys the strictest of those on its hosts. What is open goes on.
func (s *Slots) setLimits(now time.Duration, hostID uint32, l Limits) {
	h := s.hosts.At(hostID)
	if h.limits == l {
		return
	}
	old := h.limits
	if h.limits = l; h.group != 0 {
		s.join(h.group, l)
		s.part(h.group, old)
		s.bring(s.groups.At(h.group), h)
	}
	s.bar(hostID)
	s.shutChanged(now, hostID)
}

// bring has a group keep what the groups that a host was in before owe it.
func (s *Slots) bring(g *group, h *host) {
	if h.left > 0 { // what settings ask for may have changed since
		h.carry = max(h.carry, h.left+h.limits.gap(&s.cfg))
	}
	g.putOff(h.carry, Moved)
}

// bar keeps the list of barred hosts with documents, which are rejected.
func (s *Slots) bar(hostID uint32) {
	h := s.hosts.At(hostID)
	reject := h.limits.Blocked && h.docs > 0
	if !reject && s.byBarred.has(&s.barred, hostID) {
		s.readmitted++
	}
	s.byBarred.set(&s.barred, hostID, reject)
}

// shut reports whether nothing goes out to a host, whatever its group may.
func (h *host) shut() bool {
	return h.moving || h.aside || h.blocked != 0 && !faulty(faultBlock) || h.limits.Blocked && !faulty(faultLimits)
}

// SetAside has nothing go out to a host, which stays in its group with all that is held for it, or lets it go on.
func (s *Slots) setAddressPending(now time.Duration, hostID uint32, aside bool) {
	h := s.hosts.At(hostID)
	if h.aside == aside {
		return
	}
	h.aside = aside
	if aside {
		s.pin(hostID)
	} else {
		s.unpin(hostID)
	}
	s.shutChanged(now, hostID)
}

// shutChanged lets things go on, or not, after what shut says may have changed.
func (s *Slots) shutChanged(now time.Duration, hostID uint32) {
	s.review(hostID)
	s.unpark(hostID)
	s.placeHost(now, hostID)
}

// tally counts the hosts of a group by their limits. Groups without limits have none.
type tally map[Limits]uint32

// join and part keep a group's tally when a host with limits comes or goes.
func (s *Slots) join(groupID uint32, l Limits) {
	t := s.tallies[groupID]
	g := s.groups.At(groupID)
	g.size++
	if t == nil {
		if l == (Limits{}) {
			return
		}
		t = tally{}
		if g.size > 1 {
			t[Limits{}] = g.size - 1
		}
		s.tallies[groupID] = t
	}
	if t[l]++; t[l] == 1 {
		s.obey(g, t)
	}
}

func (s *Slots) part(groupID uint32, l Limits) {
	g := s.groups.At(groupID)
	g.size--
	t := s.tallies[groupID]
	if t == nil {
		return
	}
	if t[l]--; t[l] > 0 {
		return
	}
	delete(t, l)
	if len(t) == 0 || len(t) == 1 && t[Limits{}] > 0 {
		delete(s.tallies, groupID)
		g.gap, g.most = 0, 0
		return
	}
	s.obey(g, t)
}

// obey has a group keep the strictest limits of a tally. What settings say for all hosts is left to ordinary and most, so that
// new settings hold at once.
func (s *Slots) obey(g *group, t tally) {
	g.gap, g.most, g.usualGap, g.usualMost = 0, math.MaxInt, false, false
	for l := range t { // whatever the order
		g.gap = max(g.gap, l.Gap)
		g.usualGap = g.usualGap || l.Gap == 0
		if l.Concurrent > 0 {
			g.most = min(g.most, l.Concurrent)
		} else {
			g.usualMost = true
		}
	}
}

func (l *Limits) gap(cfg *Config) time.Duration {
	if l.Gap > 0 {
		return l.Gap
	}
	return cfg.Gap
}

// ordinary is a group's gap between two requests where nothing but settings asks for one.
func (s *Slots) ordinary(g *group) time.Duration {
	if g.most == 0 || faulty(faultLimits) {
		return s.cfg.Gap
	}
	if g.usualGap {
		return max(g.gap, s.cfg.Gap)
	}
	return g.gap
}

// most is how many requests to a group may be open.
func (s *Slots) most(g *group) int {
	if g.most == 0 || faulty(faultLimits) {
		return s.cfg.Concurrent
	}
	if g.usualMost {
		return min(g.most, s.cfg.Concurrent)
	}
	return min(g.most, s.cfg.MaxConcurrent)
}
