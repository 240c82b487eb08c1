package engine

import (
	"net/netip"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/container/dense"
)

// A host with documents held is looked up again once what the resolver has in memory of it has ended, when a document of it
// is about to be sent. The host is set aside until the answer comes, but not for long: what is slow to answer holds up no
// host whose address is known. Where the address is another one the host moves as it does when rules change (hostslots.Host.Move):
// requests that are open end first, and the times of both groups bind. Where its name fails for now the host stays.
const (
	checkMost  = 2 * time.Second  // for which a host is set aside
	staysAfter = 30 * time.Second // after its name failed for now a host is looked up again
)

// address is what is known of where a host is, which is bound.
type address struct {
	until      time.Duration // it is so until then
	checkUntil time.Duration // the host is set aside, until then at the latest; 0: it is not
	fresh      bool          // a look-up has just said so: the next turn may use that, however short it holds
	lookingUp  bool          // a look-up again is out
	gone       bool          // there is no such name any more
}

// addresses is how hosts, which are numbered densely, stand.
type addresses struct {
	byHost dense.Array[address]
	checks []addressCheck        // by time; some hosts have come back since
	moved  map[uint32]netip.Addr // where hosts are to be asked that are on their way to another group
}

// addressCheck is a host that was set aside.
type addressCheck struct {
	host  uint32
	until time.Duration
}

func (a *addresses) of(host uint32) *address { return a.byHost.At(host) }

// isAddressCurrent reports whether the host of a turn is where it is known to be. If not, the turn is over: the host is looked up,
// moves, or its document has ended.
func (e *Engine) isAddressCurrent(t hostslots.Selection) bool {
	a := e.dns.addresses.of(t.Host)
	if e.now >= a.until && !a.fresh && !faulty(faultStay) && !e.isCheckPending(t.Host, a) && e.checkAddress(t.Host, a) {
		return false
	}
	a.fresh = false
	if a.gone {
		e.slots.DequeueSelected(e.now, t)
		e.end(t.Doc, docindex.DNS, 0)
	}
	return !a.gone
}

// isCheckPending reports whether a host is being looked up again. What is noted may be of one that had its number before.
func (e *Engine) isCheckPending(host uint32, a *address) bool {
	if a.lookingUp {
		_, a.lookingUp = e.dns.lookups[string(e.slots.Host(host).Name())]
	}
	return a.lookingUp
}

// checkAddress asks the resolver where a host is; away reports whether it is set aside for that, or moves.
func (e *Engine) checkAddress(host uint32, a *address) (away bool) {
	name := e.slots.Host(host).Name()
	if addr, err, ok := e.opt.Cached(name); ok {
		return e.learnAddress(host, a, addr, err)
	}
	a.lookingUp, a.checkUntil = true, e.now+checkMost
	e.dns.addresses.checks = append(e.dns.addresses.checks, addressCheck{host, a.checkUntil})
	e.slots.Host(host).SetAddressPending(e.now, true)
	e.lookUp(string(name))
	return true
}

// learnAddress takes what a look-up has said of a host that is bound; away reports whether the host moves.
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

// moveTo moves a host to another address. If daemons share a reservation the address is noted, and the host moves when its
// binding has ended (isBound); only a host in a group with a name moves at once, within the group.
func (e *Engine) moveTo(host uint32, addr netip.Addr) (away bool) {
	known := e.slots.Host(host).Addr()
	if b := e.binding(host); e.opt.Lease > 0 && b.group.IsValid() {
		b.addr = addr
		return false
	} else if e.opt.Lease > 0 {
		known = b.addr
	}
	if addr == known {
		return false
	}
	e.dns.addresses.moved[host] = addr
	return e.regroup(host)
}

// addressChecked takes the answer to a look-up again; ok is false where none was out for the host.
func (e *Engine) addressChecked(host uint32, addr netip.Addr, err error) (ok bool) {
	a := e.dns.addresses.of(host)
	under := a.lookingUp
	a.lookingUp = false
	e.endCheck(host, a)
	if _, bound := e.slots.Host(host).GroupID(); !under || !bound {
		return false
	}
	e.learnAddress(host, a, addr, err)
	a.fresh = true
	return true
}

// endCheck has a host go on that was set aside.
func (e *Engine) endCheck(host uint32, a *address) {
	if a.checkUntil > 0 {
		a.checkUntil = 0
		e.slots.Host(host).SetAddressPending(e.now, false)
	}
}

// endSlowChecks has hosts go on whose look-ups take long.
func (e *Engine) endSlowChecks(due *waiter) {
	all := &e.dns.addresses.checks
	for len(*all) > 0 {
		first := (*all)[0]
		if first.until > e.now {
			due.after(first.until - e.now)
			return
		}
		*all = (*all)[1:]
		if a := e.dns.addresses.of(first.host); a.checkUntil == first.until {
			e.endCheck(first.host, a)
		}
	}
}
