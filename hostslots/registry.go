package hostslots

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"time"
)

// Origin returns the number of an origin, made on first sight: key is scheme,
// host and port in one string, name its host. Both are copied; name is at most 255 bytes. The number
// is good while the origin's host has documents or requests, and after that
// until Forgotten tells it.
func (s *Slots) EnsureOrigin(key, name []byte) uint32 {
	hash := s.hash(key)
	if id := s.findOrigin(hash, key); id != 0 {
		return id
	}
	return s.addOrigin(key, origin{hash: hash, host: s.EnsureHost(name)})
}

func (s *Slots) addOrigin(key []byte, o origin) uint32 {
	h := s.hosts.At(o.host)
	id := s.origins.New()
	ref, b := s.text.New(len(key))
	copy(b, key)
	o.text, o.textLen, o.next = ref, uint16(len(key)), h.origins
	*s.origins.At(id) = o
	h.origins = id
	s.originByKey.Add(o.hash, id)
	return id
}

func (s *Slots) findOrigin(hash uint32, key []byte) uint32 {
	return s.originByKey.Find(hash, func(id uint32) bool { return bytes.Equal(s.OriginKey(id), key) })
}

// OriginKey returns the key that origin id was made with.
func (s *Slots) OriginKey(id uint32) []byte {
	o := s.origins.At(id)
	return s.text.Bytes(o.text, int(o.textLen))
}

// HostOf returns the host of an origin.
func (s *Slots) HostOf(originID uint32) uint32 { return s.origins.At(originID).host }

// Origins calls yield with each origin of a host.
func (s *Slots) eachOrigin(hostID uint32, yield func(originID uint32)) {
	for id := s.hosts.At(hostID).origins; id != 0; id = s.origins.At(id).next {
		if s.origins.At(id).base == 0 {
			yield(id)
		}
	}
}

// Find returns the number of a host, or 0 where it is not known.
func (s *Slots) FindHost(name []byte) uint32 {
	return s.hostByName.Find(s.hash(name), func(id uint32) bool { return bytes.Equal(s.hostName(id), name) })
}

// HostName returns the name of host id.
func (s *Slots) hostName(id uint32) []byte {
	h := s.hosts.At(id)
	return s.text.Bytes(h.name, int(h.nameLen))
}

// Ensure returns the number of a host, made on first sight.
func (s *Slots) EnsureHost(name []byte) uint32 {
	if id := s.FindHost(name); id != 0 {
		return id
	}
	id := s.hosts.New()
	ref, b := s.text.New(len(name))
	copy(b, name)
	hash := s.hash(name)
	*s.hosts.At(id) = host{name: ref, nameLen: uint8(len(name)), hash: hash}
	s.hostByName.Add(hash, id)
	s.byIdle.pushBack(&s.idle, id)
	s.idlers++
	return id
}

// idleChanged keeps the list of hosts that have nothing to do.
func (s *Slots) idleChanged(id uint32) {
	idle := !s.hosts.At(id).busy()
	if idle == s.byIdle.has(&s.idle, id) {
		return
	}
	s.byIdle.set(&s.idle, id, idle)
	if idle {
		s.idlers++
	} else {
		s.idlers--
	}
}

// Pin keeps a host known and in its group, until Unpin, as documents would.
func (s *Slots) pin(hostID uint32) {
	s.hosts.At(hostID).pins++
	s.idleChanged(hostID)
}

// Unpin undoes one Pin.
func (s *Slots) unpin(hostID uint32) {
	s.hosts.At(hostID).pins--
	s.idleChanged(hostID)
}

// settled reports whether a host has a group and cannot leave it: it has documents, requests or pins.
func (h *host) settled() bool { return h.group != 0 && h.busy() }

// Leave takes a host that is not settled out of its group, so that what is
// offered for it waits until it is bound.
func (s *Slots) unbind(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	if h.group == 0 || h.busy() {
		return
	}
	s.depart(now, hostID)
}

// depart takes a host out of its group. What the group owed before, the host does.
func (s *Slots) depart(now time.Duration, hostID uint32) {
	h := s.hosts.At(hostID)
	id := h.group
	g := s.groups.At(id)
	if !faulty(faultCarry) {
		h.carry, h.left = max(h.carry, s.due(g)), max(h.left, g.last)
	}
	s.byTurn.set(&g.turns, hostID, false)
	s.byMember.remove(&g.members, hostID)
	s.dropDelay(g, h.delay)
	s.part(id, h.limits)
	h.group = 0
	s.place(now, id)
	s.byEmpty.set(&s.empties, id, g.members.head == 0)
}

// Bind puts a host into the group of addr. A settled host stays where it is;
// one that moves takes its times along.
func (s *Slots) bindAddr(now time.Duration, hostID uint32, addr netip.Addr) {
	if s.hosts.At(hostID).settled() {
		return
	}
	delete(s.addrs, hostID)
	s.bind(now, hostID, addr.As16())
}

// BindNamed puts a host into a group that has a name, whatever addresses its hosts have. Otherwise it is like Bind.
func (s *Slots) bindNamed(now time.Duration, hostID uint32, name string, addr netip.Addr) {
	if s.hosts.At(hostID).settled() {
		return
	}
	s.addrs[hostID] = addr
	key := namedKey(name)
	s.names[key] = name
	s.bind(now, hostID, key)
}

// namedKey is the key of a group with a name, which is no address that can be asked: multicast, and an unknown kind of
// that.
func namedKey(name string) (key [16]byte) {
	sum := sha256.Sum256([]byte(name))
	copy(key[:], sum[:])
	key[0] = 0xff
	return key
}

// Addr is where requests to a host go that is bound.
func (s *Slots) addr(hostID uint32) netip.Addr {
	if addr, ok := s.addrs[hostID]; ok {
		return addr
	}
	return s.groups.At(s.hosts.At(hostID).group).ip()
}

func (s *Slots) bind(now time.Duration, hostID uint32, key [16]byte) {
	h := s.hosts.At(hostID)
	if h.group != 0 && s.groups.At(h.group).addr == key {
		return
	}
	id := s.groupFor(key)
	s.unbind(now, hostID)
	s.setFailing(hostID, false)
	g := s.groups.At(id)
	s.bring(g, h)
	if h.delay > 0 && g.last < g.unknown { // it may have been forgotten since, as that was long ago for others
		g.putOff(g.unknown+h.delay, Moved)
	}
	h.group, h.failed = id, false
	s.byMember.pushBack(&g.members, hostID)
	s.byEmpty.set(&s.empties, id, false)
	s.addDelay(g, h.delay)
	s.join(id, h.limits)
	g.docs += h.docs
	s.moveShares(hostID, 1)
	s.homeless -= int(h.docs)
	s.review(hostID)
	s.unpark(hostID)
	s.recount(id)
	s.place(now, id)
}

func (s *Slots) groupFor(key [16]byte) uint32 {
	id, ok := s.groupByAddr[key]
	if !ok {
		id = s.groups.New()
		s.groups.At(id).addr, s.groups.At(id).unknown = key, s.swept
		s.groupByAddr[key] = id
		s.byEmpty.pushBack(&s.empties, id)
	}
	return id
}
