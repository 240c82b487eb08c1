package engine

import (
	"net/netip"
	"time"

	"urlserver/docindex"
)

// resolve finds the group of a host that is not settled: at once where the address is
// known, else by a look-up. A failure that is known at once is left to failIfKnown.
func (e *Engine) resolve(host uint32) {
	name := e.slots.HostName(host)
	addr, err, ok := e.opt.Cached(name)
	if ok && err == nil {
		e.bind(host, addr)
		return
	}
	e.slots.Leave(e.now, host)
	if !ok {
		e.lookUp(string(name))
	}
}

func (e *Engine) lookUp(name string) {
	if _, under := e.lookups[name]; under {
		return
	}
	e.lookups[name] = struct{}{}
	e.Out.Lookups = append(e.Out.Lookups, name)
}

// failIfKnown gives up at once on a host whose look-up has failed a moment ago.
func (e *Engine) failIfKnown(host uint32) {
	if e.claims.bindings.under(host) {
		return
	}
	name := e.slots.HostName(host)
	if _, under := e.lookups[string(name)]; under {
		return
	}
	if _, err, ok := e.opt.Cached(name); ok && err != nil {
		e.giveUp(host, err)
		return
	}
	e.resolve(host)
}

const relookAfter = 5 * time.Second // after a look-up that nobody answered

// relook is a name to be looked up again.
type relook struct {
	name string
	at   time.Duration
}

// lookAgain looks names up again that nobody answered.
func (e *Engine) lookAgain(due *waiter) {
	for len(e.relooks) > 0 {
		r := e.relooks[0]
		if r.at > e.now {
			due.after(r.at - e.now)
			return
		}
		e.relooks = e.relooks[1:]
		delete(e.lookups, r.name)
		if host := e.slots.Find([]byte(r.name)); host != 0 && e.slots.Resolving(host) {
			e.lookUp(r.name)
		}
	}
}

// Resolved takes the answer to one of Out.Lookups. Documents wait where there was none because no server answers.
func (e *Engine) Resolved(name string, addr netip.Addr, err error) {
	if err != nil && e.opt.Down != nil && e.opt.Down(err) {
		e.relooks = append(e.relooks, relook{name, e.now + relookAfter})
		return
	}
	delete(e.lookups, name)
	host := e.slots.Find([]byte(name))
	if host == 0 || !e.slots.Resolving(host) {
		return
	}
	if err != nil {
		e.giveUp(host, err)
		return
	}
	e.bind(host, addr)
}

// giveUp ends what waits for a host without an address.
func (e *Engine) giveUp(host uint32, err error) {
	e.slots.Fail(host)
	delete(e.visits, host)
	for _, id := range e.slots.Unask(host) {
		e.finishTrip(id, unanswered(err))
	}
}

// endFailed ends documents of hosts that were given up.
func (e *Engine) endFailed(budget *int) {
	for ; *budget > 0; *budget-- {
		doc := e.slots.Failed()
		if doc == 0 {
			return
		}
		e.end(doc, docindex.DNS, 0)
	}
}
