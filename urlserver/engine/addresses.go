package engine

import (
	"net/netip"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/container/dense"
)

// A bound host with documents is looked up again once its address has expired in the resolver's
// cache, when a document of it is about to be sent. The host waits for the answer, but not for
// long: a slow answer holds up no host whose address is known. If the address has changed, the
// host moves as it does when rules change (hostslots.Host.Move): its open requests end first, and
// the next one keeps the pace of both groups. If the look-up fails for now, the host stays.
const (
	checkMost  = 2 * time.Second  // that a host waits for the answer
	staysAfter = 30 * time.Second // until the next look-up of a host whose look-up failed for now
)

// address is what is known of the address of a bound host.
type address struct {
	until     time.Duration // the address counts as current until then
	fresh     bool          // a look-up has just confirmed it: the next turn may use it, however short its TTL
	lookingUp bool          // it is being looked up again
	gone      bool          // the name does not exist any more
}

// addresses has the addresses of hosts, by the slots' host numbers.
type addresses struct {
	byHost   dense.Array[address]
	checking map[uint32]time.Duration // hosts that wait for the answer, and until when at the latest
	checks   []addressCheck           // the same by time; some hosts no longer wait
	moved    map[uint32]netip.Addr    // the new addresses of hosts on their way to another group
}

// addressCheck is a host that waits for the answer to a look-up.
type addressCheck struct {
	host  uint32
	until time.Duration
}

func (a *addresses) of(host uint32) *address { return a.byHost.At(host) }

// isAddressCurrent reports whether the selected document's host is still at its known address. If
// not, it has begun a look-up, moved the host, or ended the document, and the caller must drop the
// selection.
func (e *Engine) isAddressCurrent(t hostslots.Selection) bool {
	a := e.dns.addresses.of(t.Host)
	if e.now >= a.until && !a.fresh && !faulty(FaultStay) && !e.isCheckPending(t.Host, a) &&
		e.checkAddress(t.Host, a) {
		return false
	}
	a.fresh = false
	if a.gone {
		e.slots.DequeueSelected(e.now, t)
		e.end(t.Doc, docindex.DNS, 0)
	}
	return !a.gone
}

// isCheckPending reports whether a host is being looked up again. It corrects a.lookingUp, which
// may stem from a host that had the same number before.
func (e *Engine) isCheckPending(host uint32, a *address) bool {
	if a.lookingUp {
		_, a.lookingUp = e.dns.lookups[string(e.slots.Host(host).Name())]
	}
	return a.lookingUp
}

// checkAddress asks the resolver for the host's address. away reports whether the host waits for
// the answer, or moves.
func (e *Engine) checkAddress(host uint32, a *address) (away bool) {
	name := e.slots.Host(host).Name()
	if addr, err, ok := e.opt.Cached(name); ok {
		return e.learnAddress(host, a, addr, err)
	}
	a.lookingUp = true
	until := e.now + checkMost
	e.dns.addresses.checking[host] = until
	e.dns.addresses.checks = append(e.dns.addresses.checks, addressCheck{host, until})
	e.slots.Host(host).SetAddressPending(e.now, true)
	e.lookUp(string(name))
	return true
}

// learnAddress takes the result of a look-up of a bound host. away reports whether the host moves.
func (e *Engine) learnAddress(host uint32, a *address, addr netip.Addr, err error) (away bool) {
	a.gone = false
	switch {
	case err == nil:
		a.until = e.now
		if e.opt.CachedFor != nil {
			a.until += e.opt.CachedFor(e.slots.Host(host).Name())
		}
		return e.moveTo(host, addr)
	case e.isTemporary(err):
		a.until = e.now + staysAfter
	default:
		a.gone, a.until = true, e.now+time.Second
		e.failFetches(host, err)
	}
	return false
}

// moveTo moves a host to another address. If daemons share a reservation, the address is noted,
// and the host moves when its binding has ended (isBound). Only a host in a named group moves at
// once, within the group.
func (e *Engine) moveTo(host uint32, addr netip.Addr) (away bool) {
	known := e.slots.Host(host).Addr()
	if e.opt.Lease > 0 {
		b := e.binding(host)
		if b.group.IsValid() {
			b.addr = addr
			return false
		}
		known = b.addr
	}
	if addr == known {
		return false
	}
	e.dns.addresses.moved[host] = addr
	return e.regroup(host)
}

// addressChecked takes the answer to a repeated look-up. ok is false if none was under way for the
// host.
func (e *Engine) addressChecked(host uint32, addr netip.Addr, err error) (ok bool) {
	a := e.dns.addresses.of(host)
	under := a.lookingUp
	a.lookingUp = false
	e.endCheck(host)
	if _, bound := e.slots.Host(host).GroupID(); !under || !bound {
		return false
	}
	e.learnAddress(host, a, addr, err)
	a.fresh = true
	return true
}

// isChecking reports whether a host waits for its address.
func (e *Engine) isChecking(host uint32) bool { return e.dns.addresses.checking[host] != 0 }

// endCheck ends a host's wait for its address.
func (e *Engine) endCheck(host uint32) {
	if e.isChecking(host) {
		delete(e.dns.addresses.checking, host)
		e.slots.Host(host).SetAddressPending(e.now, false)
	}
}

// endSlowChecks ends the waits of hosts whose look-ups take long.
func (e *Engine) endSlowChecks(due *waiter) {
	all := &e.dns.addresses.checks
	for len(*all) > 0 {
		first := (*all)[0]
		if first.until > e.now {
			due.after(first.until - e.now)
			return
		}
		*all = (*all)[1:]
		if e.dns.addresses.checking[first.host] == first.until {
			e.endCheck(first.host)
		}
	}
}
