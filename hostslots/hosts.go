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

// SetRobotsPending holds back the documents of an origin while its robots.txt is not known, or
// lets them go on.
func (s *Slots) SetRobotsPending(now time.Duration, originID uint32, pending bool) {
	hostID := s.HostOf(originID)
	for id := s.hosts.At(hostID).origins; id != 0; id = s.origins.At(id).next {
		if o := s.origins.At(id); id == originID || o.of == originID {
			before := o.offers()
			o.robotsPending = pending
			s.offersChanged(o, before)
		}
	}
	s.rescheduleHost(now, hostID)
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

// bindAddr is Host.Bind.
func (s *Slots) bindAddr(now time.Duration, hostID uint32, addr netip.Addr) {
	if s.hosts.At(hostID).settled() {
		return
	}
	delete(s.named.addrs, hostID)
	s.bind(now, hostID, addr.As16())
}

// bindNamed is Host.BindNamed.
func (s *Slots) bindNamed(now time.Duration, hostID uint32, name string, addr netip.Addr) {
	if s.hosts.At(hostID).settled() {
		return
	}
	s.named.addrs[hostID] = addr
	id := nameID(name)
	s.named.names[id] = name
	s.bind(now, hostID, id)
}

// bind puts a host that is not settled into a group.
func (s *Slots) bind(now time.Duration, hostID uint32, groupID GroupID) {
	h := s.hosts.At(hostID)
	if h.group != 0 && s.groups.At(h.group).id == groupID {
		return
	}
	id := s.ensureGroup(groupID)
	s.unbind(now, hostID)
	s.setFailing(hostID, false)
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

// unbind is Host.Unbind.
func (s *Slots) unbind(now time.Duration, hostID uint32) {
	if h := s.hosts.At(hostID); h.group != 0 && !h.busy() {
		s.leaveGroup(now, hostID)
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

// removeCrawlDelay is called when a host with this Crawl-delay leaves the group or has another one
// now. The group's hosts are looked through only if it was the last with the longest delay.
func (s *Slots) removeCrawlDelay(g *group, delay time.Duration) {
	if !s.pacer.removeCrawlDelay(&g.pace, delay) {
		return
	}
	for id := g.members.head; id != 0; id = s.members.next(id) {
		s.pacer.addCrawlDelay(&g.pace, s.hosts.At(id).crawlDelay)
	}
}

// setCrawlDelay is Host.SetCrawlDelay.
func (s *Slots) setCrawlDelay(now time.Duration, hostID uint32, delay time.Duration) {
	h := s.hosts.At(hostID)
	if h.crawlDelay == delay {
		return
	}
	old := h.crawlDelay
	h.crawlDelay = delay
	if h.group == 0 {
		return
	}
	g := s.groups.At(h.group)
	s.pacer.addCrawlDelay(&g.pace, delay)
	s.removeCrawlDelay(g, old)
	s.reschedule(now, h.group)
}

// setLimits is Host.SetLimits.
func (s *Slots) setLimits(now time.Duration, hostID uint32, l Limits) {
	h := s.hosts.At(hostID)
	if h.limits == l {
		return
	}
	old := h.limits
	if h.limits = l; h.group != 0 {
		g := s.groups.At(h.group)
		s.pacer.addLimits(&g.pace, h.group, g.size+1, l)
		s.pacer.removeLimits(&g.pace, h.group, old)
		s.pacer.inherit(&g.pace, &h.carried, l)
	}
	s.updateRuleBlocked(hostID)
	s.closedChanged(now, hostID)
}

// blockHost is Host.Block.
func (s *Slots) blockHost(now time.Duration, hostID uint32, until time.Duration) {
	if until > now {
		s.hosts.At(hostID).blocked = until
		s.pacer.blocks.Set(hostID, until)
	} else {
		s.hosts.At(hostID).blocked = 0
		s.pacer.blocks.Remove(hostID)
	}
	s.closedChanged(now, hostID)
}

// endBlocks ends the blocks whose time is over.
func (s *Slots) endBlocks(now time.Duration) {
	for {
		id, until, ok := s.pacer.blocks.Min()
		if !ok || until > now {
			return
		}
		s.blockHost(now, id, 0)
	}
}

// setAddressPending is Host.SetAddressPending.
func (s *Slots) setAddressPending(now time.Duration, hostID uint32, pending bool) {
	h := s.hosts.At(hostID)
	if h.addressPending == pending {
		return
	}
	h.addressPending = pending
	if pending {
		s.pin(hostID)
	} else {
		s.unpin(hostID)
	}
	s.closedChanged(now, hostID)
}

// closedChanged brings the state of a host's group up to date after the result of host.closed may
// have changed.
func (s *Slots) closedChanged(now time.Duration, hostID uint32) {
	s.updateRotation(hostID)
	s.resumeOwnRequests(hostID)
	s.rescheduleHost(now, hostID)
}

func (s *Slots) pin(hostID uint32) {
	h := s.hosts.At(hostID)
	h.pins++
	s.sweeper.update(hostID, h)
}

func (s *Slots) unpin(hostID uint32) {
	h := s.hosts.At(hostID)
	h.pins--
	s.sweeper.update(hostID, h)
}
