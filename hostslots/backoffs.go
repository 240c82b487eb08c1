package hostslots

import (
	"net/netip"
	"time"
)

// AddressBackoff is how an address backs off.
type AddressBackoff struct {
	Addr  netip.Addr
	Gap   time.Duration // 0: the address does not back off
	Sites []string      // the sites whose failures made the address back off
}

// backoffs has the backoffs that the doc index has to be told of, and those that it had kept.
type backoffs struct {
	changed  map[uint32]struct{}        // groups whose backoff ChangedBackoff has not returned yet
	restored map[GroupID]AddressBackoff // Config.Backoffs of addresses that have no group yet
}

func newBackoffs(restored []AddressBackoff) backoffs {
	b := backoffs{map[uint32]struct{}{}, map[GroupID]AddressBackoff{}}
	for _, one := range restored {
		b.restored[one.Addr.As16()] = one
	}
	return b
}

// ChangedBackoff returns the backoff of the host's address. If it has not changed since the last
// call, changed is false and b is zero.
func (h Host) ChangedBackoff() (b AddressBackoff, changed bool) {
	s := h.s
	if len(s.pacer.backoffs.changed) == 0 {
		return b, false
	}
	id := h.record().group
	if above := h.record().above; above != 0 {
		id = above
	}
	if _, changed = s.pacer.backoffs.changed[id]; !changed {
		return b, false
	}
	delete(s.pacer.backoffs.changed, id)
	g := s.groups.At(id)
	return AddressBackoff{Addr: g.ip(), Gap: s.pacer.extra(&g.pace).backoff, Sites: s.failingSites(id)}, true
}

// RestorePause forbids requests to the host's site before the given moment. The doc index has kept
// this pause from before the start of the daemon. group is the site group that the rules put the
// host into; "": none.
func (h Host) RestorePause(group string, until time.Duration) {
	if faulty(FaultPauses) {
		return
	}
	h.record().site.putOff(until, BeforeStart)
	if group != "" {
		h.s.groups.At(h.s.ensureGroup(nameID(group), ofSite)).pace.putOff(until, BeforeStart)
	}
}

// restoreBackoff makes a new group's address back off as it did before the start.
func (s *Slots) restoreBackoff(id uint32, g *group) {
	b, ok := s.pacer.backoffs.restored[g.id]
	if !ok || g.kind != ofAddress || faulty(FaultRestore) {
		return
	}
	delete(s.pacer.backoffs.restored, g.id)
	s.pacer.setBackoff(&g.pace, b.Gap)
	s.pacer.countBackingOff(g, 1)
	if len(b.Sites) == 0 {
		return
	}
	f := &failures{success: s.pacer.now}
	for _, site := range b.Sites[:min(mostFailing, len(b.Sites))] {
		f.sites = append(f.sites, failure{site, s.pacer.now - failingTime - 1}) // named, but too old to count
	}
	s.pacer.failures[id] = f
	g.failing = true
}
