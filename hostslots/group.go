package hostslots

import "time"

// Group is a handle of a known host group: all hosts that share an address, or those of one site.
type Group struct {
	s  *Slots
	id uint32
}

// Group returns the handle of a group by its number.
func (s *Slots) Group(id uint32) Group { return Group{s: s, id: id} }

func (g Group) record() *group { return g.s.groups.At(g.id) }

// Name returns the name of the group: that of a rule, the host that is a group by itself, or the
// address.
func (g Group) Name() string {
	r := g.record()
	if name, ok := g.s.named.names[r.id]; ok {
		return name
	}
	if r.kind == ofSite && r.members.head != 0 {
		return string(g.s.hostName(r.members.head))
	}
	return r.ip().String()
}

// IsSite reports whether the hosts of the group are one site, whatever addresses they have.
func (g Group) IsSite() bool { return g.record().kind == ofSite }

// HasSites reports whether the group is an address at which site groups have hosts.
func (g Group) HasSites() bool { return g.record().kind == ofAddress && g.record().users > 0 }

// AnyHost returns the number of one host of the group; 0: it has none.
func (g Group) AnyHost() (hostID uint32) { return g.record().members.head }

// FirstInLine returns the number of the first host of a site group that is in line at the group; 0: none is.
func (g Group) FirstInLine() (hostID uint32) { return g.record().line.head }

// Docs returns the number of documents held for the group's hosts.
func (g Group) Docs() int { return int(g.record().docs) }

// Crawls calls yield with the name of each crawl of the group's documents and the number of these,
// for no more than most crawls.
func (g Group) Crawls(most int, yield func(name string, docs int)) {
	g.s.crawls.each(g.id, most, yield)
}

// Gap returns the gap of the group that is in force now. For an address with one site it is at
// least the gap of that site.
func (g Group) Gap() time.Duration {
	r := g.record()
	gap := g.s.pacer.gap(&r.pace, g.s.pacer.groupGap(r))
	if h := g.onlyHost(); h != nil {
		gap = max(gap, g.s.pacer.gap(&h.site, g.s.pacer.siteGap(h)))
	}
	return gap
}

// NextRequest returns the moment from which a request may be sent to the group: to its site if it
// has one only, otherwise to any.
func (g Group) NextRequest() time.Duration {
	due := g.s.pacer.groupDue(g.record())
	if h := g.onlyHost(); h != nil {
		due = max(due, g.s.pacer.siteDue(h))
	}
	return due
}

// FreeFrom returns the moment from which another daemon may have the group. The other daemon does
// not know when this one requested the group's sites, so the gap of each site has passed by then.
// Of a longer gap that a site asked for, Config.Patience counts at most: the doc index keeps longer
// pauses.
func (g Group) FreeFrom() time.Duration { return max(g.NextRequest(), g.record().sitesDue) }

// onlyHost returns the host of an address that has one only, or nil.
func (g Group) onlyHost() *host {
	if r := g.record(); r.kind == ofAddress && r.size == 1 {
		return g.s.hosts.At(r.members.head)
	}
	return nil
}

// Open returns the number of open requests to the group.
func (g Group) Open() int { return g.record().open() }

// LeftSharedUntil returns the moment before which nothing is sent to the group because it is an
// address that has left a shared network; see Place.LeftShared. 0: it has left none.
func (g Group) LeftSharedUntil() time.Duration {
	if r := g.record(); r.pace.cause == LeftShared {
		return r.pace.notBefore
	}
	return 0
}

// DelayGap makes the group's gap begin at now+by, if that is later than its last request.
func (g Group) DelayGap(now, by time.Duration) {
	g.record().pace.requested(now + by)
	g.s.reschedule(now, g.id)
}

// Leased reports whether the daemon has the group's lease now.
func (g Group) Leased() bool { return g.record().lease.state == leased }

// LeaseGranted sets the end of the lease of a group that NextWantedLease returned or that has a
// lease. It does nothing if the lease has ended meanwhile.
func (g Group) LeaseGranted(now, until time.Duration) {
	if g.s.leases.grant(g.id, g.record(), until) {
		g.s.reschedule(now, g.id)
	}
}

// YieldLease stops new requests to a leased group. ReleasedLeases returns the group once no request
// to it is open. From then on NextWantedLease does not return it for the duration rest.
func (g Group) YieldLease(now, rest time.Duration) {
	r := g.record()
	if r.lease.state != leased {
		return
	}
	r.lease.yields, g.s.leases.rest = true, rest
	g.s.leases.idle = append(g.s.leases.idle, g.id)
	g.s.reschedule(now, g.id)
}

// LeaseFree records that the lease of the group will be free after the given duration. If the lease
// was denied, NextWantedLease returns the group then.
func (g Group) LeaseFree(now, after time.Duration) {
	if r := g.record(); r.lease.state == denied && now+after < g.s.leases.ends.Due(g.id) {
		r.lease.denials = 0
		g.s.leases.ends.Set(g.id, now+after)
	}
}

// LeaseAgain makes a group that NextWantedLease returned want a lease again, without a pause. The
// caller asked for the lease under the name of a host that may have left the group.
func (g Group) LeaseAgain() {
	if r := g.record(); r.lease.state == asked {
		r.lease.state = wanted
		g.s.leases.wanted.pushBack(g.id)
	}
}

// LeaseDenied records that the group's lease was not granted, or was lost. The group gives up its
// slot if others wait. NextWantedLease returns it again after a wait that doubles, up to most,
// until a lease is granted.
func (g Group) LeaseDenied(now, most time.Duration) {
	if g.s.leases.deny(now, g.id, g.record(), most) {
		g.s.docsChanged(g.id)
		g.s.reschedule(now, g.id)
		g.s.deniedAbove(now, g.id)
	}
}
