package engine

import (
	"bytes"
	"net/netip"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/protocol"
)

// send sends what is due while spiders have room.
func (e *Engine) send(budget *int, due *waiter, clock func() time.Duration) {
	e.resumeSuspended(budget)
	e.trySuspects(budget, due, false)
	for ; *budget > 0 && e.spiders.withRoom > 0; *budget-- {
		if clock != nil && *budget%clockEvery == 0 {
			e.now = max(e.now, clock())
		}
		t, wait, ok := e.slots.Next(e.now)
		if !ok {
			e.sending.lateness = 0
			due.after(wait)
			e.trySuspects(budget, due, true)
			return
		}
		e.dispatch(t)
	}
}

// dispatch decides about a selected document.
func (e *Engine) dispatch(t hostslots.Selection) {
	if len(e.outcomes.returnOnTurn) > 0 && e.returnSelected(t) {
		return
	}
	if forSuspects(t.Pool) {
		e.dispatchSuspect(t)
		return
	}
	if len(e.spiders.backs.givers) > 0 && e.sendElsewhere(t) {
		return
	}
	id := e.spiderFor(t)
	if id == 0 {
		e.slots.Suspend(e.now, t)
		return
	}
	e.dispatchTo(t, id)
}

// dispatchTo decides about a selected document for which there is a spider. It first checks
// the host's address, its binding and robots.txt. An address that has become this machine's
// own since the look-up is refused, as the resolver refuses it.
func (e *Engine) dispatchTo(t hostslots.Selection, id uint32) {
	if !e.isAddressCurrent(t) || !e.isBound(t.Host) {
		return
	}
	addr := e.slots.Host(t.Host).Addr()
	if e.opt.Own != nil && e.opt.Own(addr) {
		e.slots.DequeueSelected(e.now, t)
		e.end(t.Doc, docindex.DNS, 0)
		return
	}
	if !e.cfg.Robots.Enabled {
		e.sendTo(id, t, addr)
		return
	}
	entry := e.robots.entry(t.Origin)
	retried := entry.Unreachable() && int(entry.failures) < e.cfg.Spider.MaxAttempts && !faulty(FaultOnce)
	switch {
	case faulty(FaultUnasked):
	case retried && entry.Fresh(e.now):
		e.slots.Origin(t.Origin).SetRobotsPending(e.now, true)
		e.robots.retries.Set(t.Origin, entry.FreshUntil())
		return
	case retried || !entry.usable(e.now):
		e.slots.Origin(t.Origin).SetRobotsPending(e.now, true)
		e.obtainRobots(t.Origin)
		return
	}
	if !faulty(FaultUnasked) {
		refused, known := e.isForbidden(t)
		if !known {
			return
		}
		if refused && !faulty(FaultRobots) {
			e.slots.DequeueSelected(e.now, t)
			e.end(t.Doc, docindex.Robots, 0)
			return
		}
	}
	e.sendTo(id, t, addr)
}

// target returns the path and query of a serialised URL.
func target(url []byte) []byte {
	const scheme = len("https://") // no host is so short that this skips its "/"
	return url[scheme+bytes.IndexByte(url[scheme:], '/'):]
}

func (e *Engine) sendTo(id uint32, t hostslots.Selection, addr netip.Addr) {
	sp := e.spiders.byID[id]
	trans := e.slots.Send(e.now, t, id)
	e.desync(t)
	e.traceSent(t.Doc, sp)
	doc := e.slots.Doc(t.Doc)
	if len(sp.out) == 0 {
		e.Out.Dirty = append(e.Out.Dirty, id)
		sp.stamped = e.now
	}
	if faulty(FaultAddress) {
		if now, err, ok := e.opt.Cached(e.slots.Host(t.Host).Name()); ok && err == nil {
			addr = now
		}
	}
	if sp.payloads {
		sp.out = protocol.AppendFetchWith(sp.out, protocol.Trans(trans), doc.ID, addr, e.docURL(&doc), doc.Payload)
	} else {
		sp.out = protocol.AppendFetch(sp.out, protocol.Trans(trans), doc.ID, addr, e.docURL(&doc))
	}
	sp.recent.sent(e.now, sp.inFlight == 0)
	if sp.sent == 0 {
		sp.recent.first = e.now
	}
	sp.queued++
	sp.inFlight++
	sp.sent++
	e.spiders.joined(t.Doc, id)
	e.stats.Sent++
	if doc.Resent {
		e.stats.Retried++
	}
	e.stats.Delay.Observe(e.now - t.Due)
	e.updateSpider(id, sp)
}
