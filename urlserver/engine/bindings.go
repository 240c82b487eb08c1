package engine

import (
	"hash/maphash"
	"net/netip"
	"time"

	"urlserver/hostslots"
)

// With a shared reservation, all daemons request a host under the group that the reservation has
// bound it to. An answer holds for bindLeases leases from the moment at which it was asked for,
// and a daemon sends to a host only while its answer holds.
//
// While the daemon's own look-up gives the bound address, it extends the binding after half of
// that time. While its look-up gives another address, it does not extend the binding. It asks how
// long the binding holds, in a way that extends nothing (Bind.Ask): if another daemon still finds
// the bound address, that daemon extends the binding, and both go on there. If none does, this
// daemon stops sending to the host in time for open requests to end. It asks again and again until
// the binding has ended. Then the host goes to its new group, in all daemons.
const (
	bindLeases        = 10 // leases for which an answer holds
	questionsPerLease = 6  // questions per lease whether a binding is still in force
)

// proposal is an address to bind a host to. The host is pinned until the answer.
type proposal struct {
	host uint32
	addr netip.Addr
}

// binding is what the engine knows of the group of a host.
type binding struct {
	name    uint64        // hash of the host's name, as host numbers are used again
	at      time.Duration // when the answer in force was asked for, by this daemon or another one; 0: there is none
	asked   time.Duration // when this daemon last asked how long the binding holds
	pending bool          // the reservation is to be asked, or its answer is to come
	addr    netip.Addr    // the result of the daemon's own last look-up
	waits   bool          // the host waits until its binding ends; see awaitsEnd
	group   netip.Addr    // the bound group; invalid: the host is bound to an alias, or to nothing
}

// moved reports whether the daemon's own look-up gives another address than the bound one.
func (b *binding) moved() bool { return b.group.IsValid() && b.group != b.addr }

func (b *bindings) hashOf(name []byte) uint64 { return maphash.Bytes(b.seed, name) }

// binding returns what is known of a host's group.
func (e *Engine) binding(host uint32) *binding {
	b := e.leases.bindings.byHost.At(host)
	if name := e.leases.bindings.hashOf(e.slots.Host(host).Name()); b.name != name {
		*b = binding{name: name}
	}
	return b
}

// isBindPending reports whether the reservation is, or is to be, asked for the group of a host.
func (e *Engine) isBindPending(host uint32) bool { return e.leases.bindings.byHost.Get(host).pending }

func (e *Engine) bindTTL() time.Duration { return bindLeases * e.opt.Lease }

// usable reports whether a host may be requested under the answer in force. The last quarter of
// its time is left to open requests.
func (e *Engine) usable(b *binding) bool { return b.at != 0 && e.now < b.at+e.bindTTL()*3/4 }

// bind puts a host into the group of its address or of its rule, or first asks the reservation for
// the group.
func (e *Engine) bind(host uint32, addr netip.Addr) {
	place := e.place(host, addr)
	if e.opt.Lease == 0 {
		e.bindTo(host, place)
		e.hostResolved(host)
		return
	}
	b := e.binding(host)
	b.addr = addr
	if e.stillBound(host, b) {
		return
	}
	e.slots.Host(host).Unbind(e.now)
	if e.alias(host, &place) == "" && b.moved() && !b.pending && e.usable(b) {
		e.bindTo(host, e.placeIn(host, "", b.group))
		e.hostResolved(host)
		return
	}
	e.propose(host, b)
}

// stillBound reports whether a host may stay in the group that it was bound to less than a lease
// ago: its address is the same, and the group is leased, so any change of the binding has to wait
// for that lease.
func (e *Engine) stillBound(host uint32, b *binding) bool {
	return b.at != 0 && e.now-b.at < e.opt.Lease && e.slots.Host(host).Leased() &&
		e.slots.Host(host).IsAt(e.place(host, b.addr))
}

// propose asks the reservation for the group of a host, with the next batch.
func (e *Engine) propose(host uint32, b *binding) {
	if b.pending {
		return
	}
	b.pending = true
	e.slots.Host(host).Pin()
	e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, b.addr})
}

// isBound reports whether a host may be requested now under its binding. It extends the binding
// when that is due. If it returns false, the host leaves its group and waits for the reservation's
// answer.
func (e *Engine) isBound(host uint32) bool {
	h := e.slots.Host(host)
	if e.opt.Lease == 0 {
		return true
	}
	b := e.binding(host)
	if e.now >= b.at+e.bindTTL()/2 && (!b.moved() || e.now >= b.asked+e.opt.Lease/questionsPerLease) {
		e.propose(host, b)
	}
	if e.usable(b) {
		return true
	}
	if b.moved() {
		e.dns.addresses.moved[host] = b.addr
		return !e.regroup(host)
	}
	if h.Move(e.now, e.place(host, b.addr), true) {
		e.propose(host, b)
	}
	return false
}

// gatherBinds puts proposals into c, and questions whose time has come.
func (e *Engine) gatherBinds(c *LeaseBatch, due *waiter) {
	for {
		host, at, ok := e.leases.bindings.questions.Min()
		if !ok {
			break
		}
		if at > e.now {
			due.after(at - e.now)
			break
		}
		e.leases.bindings.questions.Remove(host)
		e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, e.binding(host).addr})
	}
	some := e.leases.bindings.proposals[:min(leaseBatch, len(e.leases.bindings.proposals))]
	e.leases.bindings.proposals = e.leases.bindings.proposals[len(some):]
	for _, p := range some {
		b := e.binding(p.host)
		b.asked = e.now
		place := e.place(p.host, p.addr)
		c.Binds = append(c.Binds, Bind{
			host: p.host, Host: string(e.slots.Host(p.host).Name()), Addr: p.addr, Alias: place.Group,
			Own: ownGroup(&place), Ask: b.moved() || b.waits, TTL: e.bindTTL(),
		})
	}
	if len(e.leases.bindings.proposals) == 0 {
		e.leases.bindings.proposals = nil
	}
}

// boundAddr returns the address that a host is bound to; the zero Addr: it is in an alias, or a
// group by itself, whose name may be an address.
func boundAddr(answer *Bind) (addr netip.Addr) {
	if !answer.Own || answer.Group != answer.Host {
		addr, _ = netip.ParseAddr(answer.Group)
	}
	return addr
}

// awaitsEnd reports whether a host has to wait until its binding ends: it is bound to itself and is
// to be in the group of its address, or it is bound to an address of a shared network and is to be
// bound to itself. Either is so when rules have changed, and when daemons find different addresses.
// The host stays pinned meanwhile.
func (e *Engine) awaitsEnd(answer *Bind, addr netip.Addr, b *binding) bool {
	host, waited := answer.host, b.waits
	if answer.Group == "" || !e.slots.Host(host).Needed() {
		return false
	}
	own := answer.Group == answer.Host && !addr.IsValid()
	if b.waits = own && !answer.Own && answer.Alias == ""; addr.IsValid() && answer.Alias == "" {
		place := e.place(host, addr)
		b.waits = ownGroup(&place)
	}
	switch {
	case b.waits:
		b.at = 0 // until then it is requested in no group
		e.leases.bindings.questions.Set(host, e.now+e.opt.Lease/questionsPerLease)
	case waited && answer.Ask:
		e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, b.addr})
	default:
		return false
	}
	return true
}

// ownGroup reports whether a host is a group by itself at a place, on a shared network.
func ownGroup(p *hostslots.Place) bool { return p.Group == "" && p.Network != "" }

// bindAnswered takes the reservation's answer for a host.
func (e *Engine) bindAnswered(answer *Bind, began time.Duration) {
	host, h := answer.host, e.slots.Host(answer.host)
	b := e.binding(host)
	addr := boundAddr(answer)
	if e.awaitsEnd(answer, addr, b) {
		return
	}
	at := began
	if answer.Ask && answer.Group != "" {
		if !e.bindingHolds(host, b, addr, began+answer.Left-e.bindTTL()) {
			return
		}
		at = b.at
	}
	b.pending = false
	h.Unpin()
	if answer.Group == "" {
		if h.Resolving() {
			e.failIfKnown(host) // its address may be another one by now
		}
		e.leases.retryAt = e.now + leaseRetry
		return
	}
	b.at = at
	if !h.Resolving() {
		if id, in := h.GroupID(); in && addr.IsValid() && id != addr.As16() {
			b.at = 0 // it was bound to another group meanwhile: it leaves at its next turn
		}
		return
	}
	if addr.IsValid() {
		e.bindTo(host, e.placeIn(host, "", addr))
	} else {
		e.bindTo(host, e.placeIn(host, answer.Group, b.addr))
	}
	b.group = addr
	e.hostResolved(host)
}

// bindingHolds takes the answer to a question: the group in force, and from when the binding would
// hold for bindTTL to end when it does. If it returns false, the host stays pinned. It waits for
// the binding to end, or for its next binding.
func (e *Engine) bindingHolds(host uint32, b *binding, group netip.Addr, at time.Duration) bool {
	h := e.slots.Host(host)
	switch {
	case !h.Needed():
		return true
	case group != b.group: // the binding has ended
		b.at, b.group = 0, netip.Addr{}
		e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, b.addr})
		return false
	}
	b.at = max(b.at, at)
	if h.Resolving() && !e.usable(b) {
		e.leases.bindings.questions.Set(host, e.now+e.opt.Lease/questionsPerLease)
		return false
	}
	return true
}
