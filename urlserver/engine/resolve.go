package engine

import (
	"net/netip"

	"urlserver/docindex"
)

// resolve finds the group of a host that is not settled: at once if the address is cached, else by
// a look-up. failIfKnown deals with a cached failure.
func (e *Engine) resolve(host uint32) {
	if e.isKnownAt(host) {
		e.nameFound(host)
		e.endBlockedFetches(host)
		e.hostResolved(host)
		return
	}
	name := e.slots.Host(host).Name()
	addr, err, ok := e.opt.Cached(name)
	if ok && err == nil {
		e.bind(host, addr)
		return
	}
	e.slots.Host(host).Unbind(e.now)
	if !ok {
		e.lookUp(string(name))
	}
}

// isKnownAt reports whether a host without documents may stay in its group, under the limits that
// it has: its address is current, and the rules have not changed since it was bound.
func (e *Engine) isKnownAt(host uint32) bool {
	if _, bound := e.slots.Host(host).GroupID(); !bound || e.opt.Lease > 0 ||
		e.rules.next != 0 && host >= e.rules.next || faulty(FaultStay) {
		return false
	}
	_, moves := e.dns.addresses.moved[host]
	a := e.dns.addresses.of(host)
	return !moves && !a.gone && !e.isChecking(host) && e.now < a.until
}

func (e *Engine) lookUp(name string) {
	if _, under := e.dns.lookups[name]; under {
		return
	}
	e.dns.lookups[name] = struct{}{}
	e.Out.Lookups = append(e.Out.Lookups, name)
}

// failIfKnown deals at once with a host whose look-up has just failed.
func (e *Engine) failIfKnown(host uint32) {
	if e.isBindPending(host) {
		return
	}
	if f := e.dns.failing[host]; f != nil {
		e.docOfFailing(host, f)
		return
	}
	name := e.slots.Host(host).Name()
	if _, under := e.dns.lookups[string(name)]; under {
		return
	}
	switch _, err, ok := e.opt.Cached(name); {
	case ok && e.isTemporary(err):
		e.failForNow(host, err)
	case ok && err != nil:
		e.failHost(host, err)
	default:
		e.resolve(host)
	}
}

// Resolved takes the answer to one of Out.Lookups.
func (e *Engine) Resolved(name string, addr netip.Addr, err error) {
	delete(e.dns.lookups, name)
	e.lookupEnded(err)
	host := e.slots.FindHost([]byte(name))
	if host == 0 {
		return
	}
	if f := e.dns.failing[host]; f != nil && f.lookingUp {
		f.lookingUp = false
		e.dns.retrying--
	}
	if e.addressChecked(host, addr, err) {
		return
	}
	waits := e.slots.Host(host).Resolving() && !e.isBindPending(host)
	if waits && e.isTemporary(err) {
		e.failForNow(host, err)
		return
	}
	e.nameFound(host)
	switch {
	case !waits || !e.slots.Host(host).Resolving(): // nothing waits for the address
	case err != nil:
		e.failHost(host, err)
	default:
		e.bind(host, addr)
	}
}

// failHost ends what waits for a host without an address.
func (e *Engine) failHost(host uint32, err error) {
	e.noteNameFault(host, err)
	e.slots.Host(host).Fail()
	e.failFetches(host, err)
}

// failFetches ends the fetches of robots.txt that wait for a host without an address. A fetch that
// was redirected there has failed. One that starts there has asked nobody, so it is not a try.
func (e *Engine) failFetches(host uint32, err error) {
	delete(e.robots.redirected, host)
	for _, id := range e.slots.Host(host).RetractOwnRequests(e.now, func(uint32) bool { return true }) {
		if e.robots.open[id].route.Redirected() {
			e.finishFetch(id, unanswered(err))
		} else {
			e.dropFetch(id)
		}
	}
}

// endFailed ends documents of hosts that were given up, and returns those of hosts whose names
// fail for now to the index.
func (e *Engine) endFailed(budget *int) {
	for ; *budget > 0; *budget-- {
		doc, host := e.slots.NextFailed()
		if doc == 0 {
			return
		}
		if f := e.dns.failing[host]; f != nil && f.returning {
			e.returnDoc(doc)
			continue
		}
		e.end(doc, docindex.DNS, 0)
	}
}
