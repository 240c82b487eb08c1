package hostslots

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// EnsureOrigin returns the number of an origin, which it adds if it is not known. The key is
// scheme, host and port in one string, name is the host, of at most 255 bytes; both are copied.
// The number of an origin, and that of its host, is good while the host has documents, own
// requests or pins, and after that until Forgotten returns it.
func (s *Slots) EnsureOrigin(key, name []byte) uint32 {
	hash := s.hash(key)
	if id := s.findOrigin(hash, key); id != 0 {
		return id
	}
	return s.addOrigin(key, origin{hash: hash, host: s.EnsureHost(name)})
}

// OriginKey returns the key of an origin, which must not be changed.
func (s *Slots) OriginKey(id uint32) []byte { return s.originKey(id) }

// HostOf returns the number of the host of an origin.
func (s *Slots) HostOf(originID uint32) uint32 { return s.origins.At(originID).host }

// HostOfDoc returns the number of the host of a document.
func (s *Slots) HostOfDoc(doc uint32) uint32 { return s.hostOfDoc(doc) }

// FindHost returns the number of a host; 0: it is not known.
func (s *Slots) FindHost(name []byte) uint32 { return s.findHost(s.hash(name), name) }

// EnsureHost returns the number of a host, which it adds if it is not known.
func (s *Slots) EnsureHost(name []byte) uint32 {
	hash := s.hash(name)
	if id := s.findHost(hash, name); id != 0 {
		return id
	}
	id := s.addHost(hash, name)
	s.sweeper.add(id)
	return id
}

// Hosts calls yield with the numbers of known hosts. It looks at most numbers, beginning with
// from; next is where to go on, 0 after the last.
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

// GroupIDOf returns the ID of the group that a host joins by Bind or, with a name, by BindNamed.
func GroupIDOf(name string, addr [16]byte) GroupID {
	if name == "" {
		return addr
	}
	return nameID(name)
}

// nameID returns the ID of a group with a name. It is no address that requests go to: multicast
// addresses begin with 0xff.
func nameID(name string) (id GroupID) {
	sum := sha256.Sum256([]byte(name))
	copy(id[:], sum[:])
	id[0] = 0xff
	return id
}

// ensureGroup returns the number of a group, which it adds if it is not known.
func (s *Slots) ensureGroup(id GroupID) uint32 {
	n, ok := s.groupByID[id]
	if !ok {
		n = s.groups.New()
		g := s.groups.At(n)
		g.id = id
		s.pacer.begin(&g.pace)
		s.groupByID[id] = n
		s.sweeper.empty.pushBack(n)
	}
	return n
}

// Bind puts the host into the group of an address. A settled host stays where it is. A host that
// changes groups takes its earliest next-request time along.
func (h Host) Bind(now time.Duration, addr netip.Addr) {
	if h.Settled() {
		return
	}
	delete(h.s.named.addrs, h.id)
	h.s.bind(now, h.id, addr.As16())
}

// BindNamed puts the host into the group with a name, whatever addresses the group's hosts have.
// Otherwise it is like Bind.
func (h Host) BindNamed(now time.Duration, name string, addr netip.Addr) {
	if h.Settled() {
		return
	}
	h.s.named.addrs[h.id] = addr
	id := nameID(name)
	h.s.named.names[id] = name
	h.s.bind(now, h.id, id)
}

// bind puts a host that is not settled into a group.
func (s *Slots) bind(now time.Duration, hostID uint32, groupID GroupID) {
	h := s.hosts.At(hostID)
	if h.group != 0 && s.groups.At(h.group).id == groupID {
		return
	}
	id := s.ensureGroup(groupID)
	s.Host(hostID).Unbind(now)
	s.Host(hostID).SetFailing(false)
	g := s.groups.At(id)
	s.pacer.inherit(&g.pace, &h.carried, h.limits)
	s.pacer.inheritForgotten(&g.pace, h.crawlDelay)
	h.group, h.failed = id, false
	s.members.pushBack(&g.members, hostID)
	g.size++
	s.sweeper.empty.set(id, false)
	s.pacer.addCrawlDelay(&g.pace, h.crawlDelay)
	s.pacer.addLimits(&g.pace, id, g.size, h.limits)
	g.docs += h.docs
	s.crawls.join(hostID, id)
	s.unresolved.docs -= int(h.docs)
	s.updateRotation(hostID)
	s.resumeOwnRequests(hostID)
	s.docsChanged(id)
	s.reschedule(now, id)
}

// Unbind takes a host that is not settled out of its group. Documents that are offered for it
// later wait until it is bound again.
func (h Host) Unbind(now time.Duration) {
	if r := h.record(); r.group != 0 && !r.busy() {
		h.s.leaveGroup(now, h.id)
	}
}

// leaveGroup takes a host out of its group. The host carries the group's times to the next one.
func (s *Slots) leaveGroup(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	id := h.group
	g := s.groups.At(id)
	if !faulty(faultCarry) {
		s.pacer.carry(&h.carried, &g.pace)
	}
	s.dispatch.rotation.set(&g.rotation, hostID, false)
	s.members.remove(&g.members, hostID)
	g.size--
	s.removeCrawlDelay(g, h.crawlDelay)
	s.pacer.removeLimits(&g.pace, id, h.limits)
	h.group = 0
	s.reschedule(now, id)
	s.sweeper.empty.set(id, g.members.head == 0)
}
