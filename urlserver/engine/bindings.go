package engine

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"urlserver/hostslots"
)

// With a shared reservation, all daemons request a host under the group that the reservation has
// bound it to. An answer holds for a while from the moment at which it was asked for, and a daemon
// sends to a host only while its answer holds.
//
// While the daemon's own look-up gives the bound address, it extends the binding when half of that
// time is left. While its look-up gives another address, it does not extend the binding. It asks
// how long the binding holds, in a way that extends nothing (Bind.Ask): if another daemon still
// finds the bound address, that daemon extends the binding, and both go on there. If none does,
// this daemon stops sending to the host in time for open requests to end. It asks again and again
// until the binding has ended. Then the host goes to its new group, in all daemons.
//
// A binding does not tell the address of a site that is a group by itself on a shared network. So
// a daemon that finds the site at an address elsewhere cannot go on there: the site waits until its
// binding ends. So two kinds of binding are short: that of a site that is a group by itself, and
// the first one of any host, since nobody knows yet which kind it is. The daemon that waits also
// leaves a mark: it binds a reserved name. A daemon that would extend the site's binding sees the mark
// and lets the binding end. All daemons can go on at the address that the site is bound to next.
const (
	bindLeases        = 10 // leases for which an answer holds
	briefLeases       = 2  // the same for a first answer, and for a site that is a group by itself
	yieldLeases       = 3  // leases for which a daemon that has found a mark does not extend the binding
	questionsPerLease = 6  // questions per lease whether a binding is still in force

	markName = "%x.mark.invalid"  // RFC 6761, section 6.4, keeps "invalid" free
	markSet  = "set.mark.invalid" // the group of a mark that is set; one that is not is bound to itself
)

// proposal is an address to bind a host to. The host is pinned until the answer.
type proposal struct {
	host uint32
	addr netip.Addr
}

// binding is what the engine knows of the group of a host.
type binding struct {
	name    uint64        // hash of the host's name, as host numbers are used again
	at      time.Duration // when the answer in force was asked for, by whichever daemon; 0: there is none
	ttl     time.Duration // for which the answer holds from then on
	asked   time.Duration // when this daemon last asked how long the binding holds
	pending bool          // the reservation is to be asked, or its answer is to come
	addr    netip.Addr    // the result of the daemon's own last look-up
	waits   bool          // the host waits until its binding ends; see awaitsEnd
	group   netip.Addr    // the bound group; invalid: the host is bound to an alias, to itself, or to nothing
	own     bool          // the host is bound to itself
	covered bool          // see Bind.Covered
	joined  bool          // the host was in an alias by the last answer
	follows bool          // this daemon goes by the binding, but does not extend it
	held    bool          // nothing is sent to the host until the answer, but it stays in its group
	yields  time.Duration // the binding is not extended until then: another daemon waits for its end
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

// ttl returns for how long a host is to be bound.
func (e *Engine) ttl(b *binding, place *hostslots.Place) time.Duration {
	if ends := b.at + b.ttl; ownGroup(place) || b.own || b.at == 0 || e.now >= ends {
		return briefLeases * e.opt.Lease
	}
	return e.bindTTL()
}

// usableFor returns how long a host may be requested under an answer. The rest of its time is left
// to open requests: a quarter, or at least a lease. A host that is bound to itself needs less. Its
// binding lasts as long as its lease, and that lasts as long as its requests.
func (e *Engine) usableFor(b *binding) time.Duration {
	if b.own {
		return b.ttl * 3 / 4
	}
	return b.ttl - max(b.ttl/4, e.opt.Lease)
}

// extendAfter returns how long after an answer the daemon extends the binding of a host that it
// still requests. It extends a first binding soon, since the next answer holds for longer.
func (e *Engine) extendAfter(b *binding) time.Duration {
	if !b.own && b.ttl < e.bindTTL() {
		return e.opt.Lease / questionsPerLease
	}
	return e.usableFor(b) * 2 / 3
}

// usable reports whether a host may be requested under the answer in force.
func (e *Engine) usable(b *binding) bool { return b.at != 0 && e.now < b.at+e.usableFor(b) }

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
// when that is due. If it returns false, the host waits for the reservation's answer. If the daemon
// proposes the group that the host is in, the host waits there, and the group keeps its lease.
// Otherwise the host leaves its group.
func (e *Engine) isBound(host uint32) bool {
	h := e.slots.Host(host)
	if e.opt.Lease == 0 {
		return true
	}
	b := e.binding(host)
	if e.now >= b.at+e.extendAfter(b) && (!b.follows || e.now >= b.asked+e.opt.Lease/questionsPerLease) {
		e.propose(host, b)
	}
	if e.usable(b) {
		return true
	}
	if b.moved() {
		e.dns.addresses.moved[host] = b.addr
		return !e.regroup(host)
	}
	place := e.place(host, b.addr)
	if b.at != 0 && h.IsAt(place) {
		b.held = true
		h.SetAddressPending(e.now, true)
		e.propose(host, b)
		return false
	}
	if h.Move(e.now, place, true) {
		e.propose(host, b)
	}
	return false
}

// bindAgain takes a host out of its group, since the reservation has bound it to another one.
func (e *Engine) bindAgain(host uint32) {
	e.binding(host).at = 0
	if e.slots.Host(host).Settled() {
		e.isBound(host)
	} else {
		e.slots.Host(host).Unbind(e.now)
	}
}

// leaveUnleased takes a host out of the group of an alias that it has left and that is not leased. The
// lease may have been denied because it was asked for under the name of this host.
func (e *Engine) leaveUnleased(host uint32) {
	group := e.slots.Host(host).Group()
	if !group.IsSite() || group.Leased() {
		return
	}
	e.bindAgain(host)
	group.LeaseFree(e.now, 0)
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
		own := ownGroup(&place)
		b.follows = b.moved() || own && (b.group.IsValid() || e.now < b.yields)
		name := string(e.slots.Host(p.host).Name())
		bind := Bind{host: p.host, Host: name, Addr: p.addr, Proposed: p.addr.String(), Alias: place.Group,
			Joins: place.Group != "" && !b.joined, Own: own, Ask: b.follows || b.waits, TTL: e.ttl(b, &place)}
		if own {
			bind.Proposed = name
		}
		c.Binds = append(c.Binds, bind)
		if b.waits || own && b.own {
			c.Binds = append(c.Binds, e.markOf(&bind, b))
		}
	}
	if len(e.leases.bindings.proposals) == 0 {
		e.leases.bindings.proposals = nil
	}
}

// markOf returns the Bind that sets the mark of a host if the host waits for the end of its
// binding, and otherwise asks whether the mark is set.
func (e *Engine) markOf(of *Bind, b *binding) Bind {
	hash := sha256.Sum256([]byte(of.Host))
	name := fmt.Sprintf(markName, hash[:8])
	mark := Bind{host: of.host, mark: true, Host: name, Proposed: name, Ask: !b.waits}
	if b.waits {
		mark.Proposed, mark.TTL = markSet, e.opt.Lease/2
	}
	return mark
}

// boundAddr returns the address that a host is bound to; the zero Addr: it is in an alias, or a
// group by itself, whose name may be an address.
func boundAddr(answer *Bind) (addr netip.Addr) {
	if !answer.Own || answer.Group != answer.Host {
		addr, _ = netip.ParseAddr(answer.Group)
	}
	return addr
}

// awaitsEnd reports whether a host has to wait until its binding ends: it is bound to itself, and is
// to be in the group of its address. This is so when daemons find different addresses, and when
// rules have changed. The host stays pinned meanwhile.
func (e *Engine) awaitsEnd(answer *Bind, b *binding) bool {
	host, waited := answer.host, b.waits
	if answer.Group == "" || !e.slots.Host(host).Needed() {
		return false
	}
	b.waits = answer.boundToItself() && !answer.Own && answer.Alias == ""
	switch {
	case b.waits:
		b.at = 0 // the host is requested in no group until then
		e.leases.bindings.questions.Set(host, e.now+e.opt.Lease/questionsPerLease)
	case waited && answer.Ask:
		e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, b.addr})
	default:
		return false
	}
	return true
}

// boundToItself reports whether the answer is that the host is a group by itself.
func (b *Bind) boundToItself() bool { return b.Group == b.Host && !boundAddr(b).IsValid() }

// ownGroup reports whether a host is a group by itself at a place, on a shared network.
func ownGroup(p *hostslots.Place) bool { return p.Group == "" && p.Network != "" }

// bindAnswered takes the reservation's answer for a host.
func (e *Engine) bindAnswered(answer *Bind, began time.Duration) {
	host, h := answer.host, e.slots.Host(answer.host)
	b := e.binding(host)
	if answer.mark {
		if answer.Group == markSet && !b.waits {
			b.yields = e.now + yieldLeases*e.opt.Lease
		}
		return
	}
	addr := boundAddr(answer)
	if b.held {
		b.held = false
		h.SetAddressPending(e.now, false)
	}
	if e.awaitsEnd(answer, b) {
		return
	}
	at, ttl := began, answer.TTL
	switch {
	case answer.Left < 0: // the host must not be requested yet; see holdBack
		at = 0
	case answer.Ask && answer.Group != "":
		if !e.bindingHolds(host, b, addr, began, answer.Left) {
			return
		}
		at, ttl = b.at, b.ttl
	}
	b.pending, b.joined = false, answer.Group != "" && !addr.IsValid() && !answer.boundToItself()
	h.Unpin()
	if answer.Group == "" {
		if h.Resolving() {
			e.failIfKnown(host) // its address may be another one by now
		}
		e.leases.retryAt = e.now + leaseRetry
		return
	}
	b.at, b.ttl, b.covered = at, ttl, answer.Covered
	place := e.placeIn(host, "", addr)
	if !addr.IsValid() {
		place = e.placeIn(host, answer.Group, b.addr)
	}
	if !h.Resolving() {
		switch id, in := h.GroupID(); {
		case !in:
		case id != place.GroupID(h.Name()):
			b.at = 0 // the reservation has bound the host to another group: it leaves at its next turn
			e.leaveUnleased(host)
		case place.Group != "" && !h.IsAt(place): // its address is one of the alias now, or is not any more
			e.bindAgain(host)
		}
		return
	}
	e.bindTo(host, place)
	b.group, b.own = addr, answer.boundToItself()
	if answer.Left < 0 {
		e.holdBack(host, b, -answer.Left)
	}
	e.hostResolved(host)
}

// holdBack sends nothing to a host, keeps it in its group, and asks for its binding after wait: an
// alias has changed, and until then other daemons may go by earlier answers.
func (e *Engine) holdBack(host uint32, b *binding, wait time.Duration) {
	b.pending, b.held = true, true
	e.slots.Host(host).Pin()
	e.slots.Host(host).SetAddressPending(e.now, true)
	e.leases.bindings.questions.Set(host, e.now+wait)
}

// bindingHolds takes the answer to a question: the group in force, and for how long it holds from
// began on. If it returns false, the host stays pinned. It waits for the binding to end, or for its
// next binding.
func (e *Engine) bindingHolds(host uint32, b *binding, group netip.Addr, began, left time.Duration) bool {
	h := e.slots.Host(host)
	switch {
	case !h.Needed():
		return true
	case group != b.group: // the binding has ended
		b.at, b.group, b.own = 0, netip.Addr{}, false
		e.leases.bindings.proposals = append(e.leases.bindings.proposals, proposal{host, b.addr})
		return false
	}
	end := began + left
	if b.at != 0 {
		end = max(end, b.at+b.ttl)
	}
	if left > briefLeases*e.opt.Lease { // it was extended
		b.ttl = e.bindTTL()
	}
	b.at = end - b.ttl
	if h.Resolving() && !e.usable(b) {
		e.leases.bindings.questions.Set(host, e.now+e.opt.Lease/questionsPerLease)
		return false
	}
	return true
}
