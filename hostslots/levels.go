package hostslots

import "time"

// Level is where a pace is kept. A request leaves only when each level allows it.
type Level uint8

const (
	NoLevel Level = iota
	SiteLevel
	AddressLevel
	NetworkLevel // of shared networks

	Levels = int(NetworkLevel) + 1
)

// String returns the name of the level; "" for NoLevel.
func (l Level) String() string { return [Levels]string{"", "site", "address", "network"}[l] }

// LevelCounts is how the paces of one level hold requests back. All but Waiting and BackingOff count
// since the start.
type LevelCounts struct {
	Waiting     int    // hosts with something to send that wait for this level; see Slots.waitsFor
	BackingOff  int    // addresses that back off now; of other levels this is not counted
	Backoffs    uint64 // times that a gap grew: after 429 or 503, an address' after those of several sites
	RetryAfters uint64 // of the Backoffs: with a Retry-After
	PutOff      uint64 // requests whose site was due, and that had to get in line for this level
}

// level returns the level of a group's pace.
func (g *group) level() Level {
	switch g.kind {
	case ofSite:
		return SiteLevel
	case ofNetwork:
		return NetworkLevel
	}
	return AddressLevel
}

// waitsFor returns the level that a host of a group waits for where it stands. In the rotation of an
// address it waits for its turn there, in that of a site group for the site.
func (s *Slots) waitsFor(h *host, g *group) Level {
	switch h.turn {
	case turnAble:
		return g.level()
	case turnWaits:
		return SiteLevel
	case turnInLine:
		return s.groups.At(h.above).level()
	}
	return NoLevel
}

// countWaiting adds n to the number of hosts that wait for the level that a host of a group waits
// for.
func (s *Slots) countWaiting(h *host, g *group, n int) {
	if level := s.waitsFor(h, g); level != NoLevel {
		s.pacer.levels[level].Waiting += n
	}
}

// heldBy returns the level that keeps a group with something to send from sending it, and the moment
// from which it may be sent as far as the paces are concerned. NoLevel: no level does, or each site
// of an address has as many open requests as it may have.
func (s *Slots) heldBy(now time.Duration, id uint32, g *group) (level Level, next time.Duration) {
	own, due := g.level(), s.pacer.groupDue(g)
	only := s.Group(id).onlyHost()
	if only != nil && s.pacer.siteDue(only) >= due {
		own, due = SiteLevel, s.pacer.siteDue(only)
	}
	switch {
	case only != nil && only.first != 0 && int(only.open) >= s.pacer.siteOpen(only):
		return SiteLevel, due
	case g.awaitsHosts():
		return NoLevel, due
	case g.rotation.head != 0 && (due > now || g.open() >= s.pacer.groupOpen(g)):
		return own, due
	case g.rotation.head != 0:
		return NoLevel, due
	case g.waits != 0 && s.hosts.At(g.waits).due >= due:
		return SiteLevel, s.hosts.At(g.waits).due
	case g.waits != 0:
		return own, due
	case g.hostsDue != 0:
		return s.groups.At(s.hosts.At(g.members.head).above).level(), max(due, g.hostsDue)
	}
	return NoLevel, due
}

// HeldBy returns the level whose pace keeps the host from being requested at the given moment.
func (v *HostView) HeldBy(now time.Duration) Level {
	switch {
	case v.Site.Open >= v.Site.MostOpen:
		return SiteLevel
	case v.Address.Level != NoLevel && v.Address.Open >= v.Address.MostOpen:
		return v.Address.Level
	case v.Next > now && v.Address.Next > v.Site.Next:
		return v.Address.Level
	case v.Next > now:
		return SiteLevel
	case v.InLine > 0:
		return v.Address.Level
	}
	return NoLevel
}
