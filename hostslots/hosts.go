package hostslots

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"time"
)

// EnsureOrigin returns the number of an origin, which it adds if it is not known. The key is
// scheme, host and port in one string, name is the host, of at most 255 bytes; both are copied.
// The number of an origin, and that of its host, is good while the host has documents, own
// requests or pins, and after that until Forgotten returns it.
func (s *Slots) EnsureOrigin(key, name []byte) uint32 {
	hostID := s.ensureHost(name, key)
	if id := s.findOrigin(hostID, key); id != 0 {
		return id
	}
	return s.addOrigin(hostID, key)
}

// Origin is a handle of a known origin. It is good as long as the origin's number is; see
// EnsureOrigin.
type Origin struct {
	s  *Slots
	id uint32
}

// Origin returns the handle of an origin by its number.
func (s *Slots) Origin(id uint32) Origin { return Origin{s: s, id: id} }

// Key returns the key of the origin, which must not be changed.
func (o Origin) Key() []byte { return o.s.originKey(o.id) }

// queues calls yield with the number of the origin, which is the queue of its documents for any
// spider, and with those of its pool queues.
func (o Origin) queues(yield func(id uint32)) {
	yield(o.id)
	for id := o.s.origins.At(o.id).next; id != 0 && o.s.origins.At(id).pool != 0; id = o.s.origins.At(id).next {
		yield(id)
	}
}

// HostOf returns the number of the host of an origin.
func (s *Slots) HostOf(originID uint32) uint32 { return s.origins.At(originID).host }

// FindHost returns the number of a host; 0: it is not known. A final dot makes no difference.
func (s *Slots) FindHost(name []byte) uint32 {
	name = trimDot(name)
	return s.findHost(s.hash(name), name)
}

// trimDot returns a host name without its final dot: it names the same host.
func trimDot(name []byte) []byte { return bytes.TrimSuffix(name, []byte(".")) }

// EnsureHost returns the number of a host, which it adds if it is not known. A final dot makes no
// difference.
func (s *Slots) EnsureHost(name []byte) uint32 { return s.ensureHost(name, nil) }

// ensureHost is EnsureHost for an origin with a key; nil: for none.
func (s *Slots) ensureHost(name, key []byte) uint32 {
	name = trimDot(name)
	hash := s.hash(name)
	if id := s.findHost(hash, name); id != 0 {
		return id
	}
	id := s.addHost(hash, name, key)
	s.sweeper.add(id, s.hosts.At(id))
	return id
}

// Hosts calls yield with the numbers of known hosts. It looks at no more than most numbers,
// beginning with from. next is the value of from for the next call; 0: all numbers have been looked
// at.
func (s *Slots) Hosts(from, most uint32, yield func(hostID uint32)) (next uint32) {
	end := uint32(s.hosts.Cap())
	until := min(from+most, end)
	for id := max(from, 1); id < until; id++ {
		if s.hosts.At(id).nameLen > 0 {
			yield(id)
		}
	}
	if until == end {
		return 0
	}
	return until
}

// GroupID identifies a host group: an IP address, or the hash of a group's name.
type GroupID [16]byte

// Place is where a host belongs: its address, and what the operator's rules say.
type Place struct {
	Addr    netip.Addr // that requests go to
	Group   string     // the name of its site group, which other hosts may be in, too; "": none
	Network string     // the shared network that it is on, where it is a site group by itself; "": none
	Covered bool       // the lease of Group counts for Addr, too: the group has the address as one of its hosts
	Site    Limits
	Address AddressLimits // of Addr

	LeftShared time.Duration // no request to Addr before, as it has left a shared network; 0: it has not
}

// GroupID returns the ID of the group that a host is in at a place: that of its address or of its
// site group.
func (p *Place) GroupID(host []byte) GroupID {
	switch {
	case p.Group != "":
		return nameID(p.Group)
	case p.Network != "":
		return nameID("site " + string(host))
	}
	return p.Addr.As16()
}

// kind returns what the group of a host is at a place.
func (p *Place) kind() groupKind {
	if p.Group == "" && p.Network == "" {
		return ofAddress
	}
	return ofSite
}

// aboveID returns the ID of what is above the site group.
func (p *Place) aboveID() GroupID {
	if p.Network == "" {
		return p.Addr.As16()
	}
	return networkID(p.Network)
}

// networkID returns the ID of a shared network. No group has such a name.
func networkID(name string) GroupID { return nameID("network " + name) }

// nameID returns the ID of a group with a name. It is no address that requests go to: multicast
// addresses begin with 0xff.
func nameID(name string) (id GroupID) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	id[0] = 0xff
	return id
}

// ensureGroup returns the number of a group, which it adds if it is not known.
func (s *Slots) ensureGroup(id GroupID, kind groupKind) uint32 {
	n, ok := s.groupByID[id]
	if !ok {
		n = s.groups.New()
		g := s.groups.At(n)
		g.id, g.kind = id, kind
		s.groupByID[id] = n
		s.sweeper.addEmpty(n, g)
		s.restoreBackoff(n, g)
	}
	return n
}

// ensurePlace returns the number of the group of a host at a place.
func (s *Slots) ensurePlace(hostID uint32, p *Place) uint32 {
	return s.ensureGroup(p.GroupID(s.hostName(hostID)), p.kind())
}

// ensureAbove returns the number of what is above the site group of a place; 0: it is no site
// group.
func (s *Slots) ensureAbove(p *Place) uint32 {
	switch {
	case p.kind() == ofAddress:
		return 0
	case p.Network == "":
		return s.ensureGroup(p.aboveID(), ofAddress)
	}
	return s.ensureGroup(p.aboveID(), ofNetwork)
}

// IsAt reports whether the host is in the group of a place, at its address.
func (h Host) IsAt(p Place) bool {
	s, r := h.s, h.record()
	if r.group == 0 || s.groups.At(r.group).id != p.GroupID(h.Name()) {
		return false
	}
	return p.kind() == ofAddress ||
		s.groups.At(r.above).id == p.aboveID() && s.addr(h.id) == p.Addr && r.covered == p.Covered
}

// Bind puts the host into the group of a place, and the limits of the place in force. It does
// nothing to a settled host. The host keeps its pace. A site group takes over the host's pace where
// that is stricter than its own.
func (h Host) Bind(now time.Duration, p Place) {
	s, r := h.s, h.record()
	if h.Settled() {
		return
	}
	if h.IsAt(p) {
		h.SetPlaceLimits(now, p)
		return
	}
	h.Unbind(now)
	h.SetFailing(false)
	h.SetLimits(now, p.Site)
	id := s.ensurePlace(h.id, &p)
	s.enterAbove(now, h.id, &p)
	g := s.groups.At(id)
	if g.kind == ofSite {
		if p.Group != "" {
			s.named.names[g.id] = p.Group
		}
		s.pacer.merge(&g.pace, &r.site)
	} else if r.wasSite { // the address has not counted the host's last request in its site group
		g.pace.requested(r.site.last)
	}
	r.group, r.failed, r.wasSite = id, false, false
	s.members.pushBack(&g.members, h.id)
	g.size++
	s.sweeper.updateGroup(id, g)
	s.pacer.addCrawlDelay(g, s.pacer.extra(&r.site).crawlDelay)
	s.pacer.addLimits(g, id, h.Limits())
	g.docs += r.docs
	s.crawls.join(h.id, id)
	s.unresolved.docs -= int(r.docs)
	h.SetPlaceLimits(now, p)
	s.updateTurn(h.id)
	s.docsChanged(id)
	s.reschedule(now, id)
}

// enterAbove puts a host of a site group below the address or the shared network of a place.
func (s *Slots) enterAbove(now time.Duration, hostID uint32, p *Place) {
	if p.kind() == ofAddress {
		return
	}
	h := s.hosts.At(hostID)
	if h.above = s.ensureAbove(p); p.Network != "" {
		s.named.addrs[hostID] = p.Addr
		s.named.names[p.aboveID()] = p.Network
	}
	h.covered = p.Covered
	up := s.groups.At(h.above)
	up.users++
	s.pacer.addLimits(up, h.above, s.pacer.limitsOf(h))
	up.pace.requested(h.site.last)
	s.sweeper.updateGroup(h.above, up)
	s.reschedule(now, h.above)
}

// leaveAbove undoes enterAbove.
func (s *Slots) leaveAbove(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	if h.above == 0 {
		return
	}
	id := h.above
	up := s.groups.At(id)
	delete(s.named.addrs, hostID)
	up.users--
	s.pacer.removeLimits(up, id, s.pacer.limitsOf(h))
	h.above, h.released = 0, false
	s.sweeper.updateGroup(id, up)
	s.reschedule(now, id)
}

// Unbind takes a host that is not settled out of its group. Documents that are offered for it
// later wait until it is bound again.
func (h Host) Unbind(now time.Duration) {
	if r := h.record(); r.group != 0 && !r.busy() {
		h.s.leaveGroup(now, h.id)
	}
}

// leaveGroup takes a host out of its group. The host keeps its pace, and takes over that of a site group.
func (s *Slots) leaveGroup(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	id := h.group
	g := s.groups.At(id)
	s.setTurn(hostID, turnNone, 0)
	if h.wasSite = g.kind == ofSite; h.wasSite {
		s.pacer.merge(&h.site, &g.pace)
	}
	if faulty(FaultCarry) {
		s.pacer.setBackoff(&h.site, 0)
		h.site = pace{extra: h.site.extra}
	}
	s.members.remove(&g.members, hostID)
	g.size--
	s.removeCrawlDelay(g, s.pacer.extra(&h.site).crawlDelay)
	s.pacer.removeLimits(g, id, s.pacer.limitsOf(h))
	s.leaveAbove(now, hostID)
	h.group = 0
	s.reschedule(now, id)
	s.sweeper.updateGroup(id, g)
}

// sitePace returns the pace of a host's site, which is its own or that of its group.
func (s *Slots) sitePace(h *host) (of *pace, ordinary time.Duration) {
	if h.group != 0 && s.groups.At(h.group).kind == ofSite {
		g := s.groups.At(h.group)
		return &g.pace, s.pacer.groupGap(g)
	}
	return &h.site, s.pacer.siteGap(h)
}

// siteName returns the name of a host's site: that of the host, or that of several hosts' group.
func (s *Slots) siteName(hostID uint32) string {
	if h := s.hosts.At(hostID); h.group != 0 && s.groups.At(h.group).kind == ofSite {
		return s.Group(h.group).Name()
	}
	return string(s.hostName(hostID))
}
