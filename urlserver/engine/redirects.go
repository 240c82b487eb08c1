package engine

import (
	"fmt"
	"net/netip"
	"slices"

	"urlserver/hostslots"
	"urlserver/internal/robots"
	"urlserver/urlserver/explain"
)

// A robots.txt may redirect to another host, which the operator has blocked, or blocks while the
// request waits there. The engine does not request that host. The robots.txt then counts as
// unreachable (RFC 9309, section 2.3.1.4): it forbids everything until the engine tries again, and
// after spider.max_attempts tries the documents end.

// noteRedirected notes that a fetch waits for a host other than its origin's.
func (e *Engine) noteRedirected(id uint32, t *robotsFetch) {
	if t.host != e.slots.HostOf(t.origin) {
		e.robots.redirected[t.host] = append(e.robots.redirected[t.host], id)
	}
}

// dropRedirected notes that a fetch no longer waits for such a host.
func (r *robotsFetches) dropRedirected(id uint32, t *robotsFetch) {
	visits, ok := r.redirected[t.host]
	if !ok {
		return
	}
	if i := slices.Index(visits, id); i >= 0 {
		visits = slices.Delete(visits, i, i+1)
	}
	if r.redirected[t.host] = visits; len(visits) == 0 {
		delete(r.redirected, t.host)
	}
}

// endBlockedFetches ends the fetches that wait for a blocked host which is not their origin's.
func (e *Engine) endBlockedFetches(host uint32) {
	visits := e.robots.redirected[host]
	if len(visits) == 0 || !e.isBlocked(host) {
		return
	}
	delete(e.robots.redirected, host)
	name := string(e.slots.Host(host).Name())
	wait := max(0, e.slots.Host(host).BlockedUntil()-e.now)
	for _, id := range e.slots.Host(host).RetractOwnRequests(e.now, func(id uint32) bool {
		return e.slots.HostOf(e.robots.open[id].origin) != host
	}) {
		origin := e.robots.open[id].origin
		e.finishFetch(id, robots.Response{RetryAfter: wait,
			Err: fmt.Errorf("robots.txt: redirects to %s, which is blocked", name)})
		e.robots.blockedTargets[origin] = name
	}
}

// isBlocked reports whether the operator or a rule blocks a host.
func (e *Engine) isBlocked(host uint32) bool {
	if _, bound := e.slots.Host(host).GroupID(); !bound {
		// The slots have the limits from when it was bound last.
		return e.slots.Host(host).BlockedUntil() > e.now || e.limitsFor(host, netip.Addr{}).Block
	}
	return e.slots.Host(host).Blocked()
}

// blockedTarget returns which blocked host the robots.txt of a host's origin redirects to; the zero
// Reason: none.
func (e *Engine) blockedTarget(host uint32) (why explain.Reason) {
	e.slots.Host(host).Origins(func(o uint32) {
		name, ok := e.robots.blockedTargets[o]
		if !ok {
			return
		}
		var view hostslots.HostView
		if id := e.slots.FindHost([]byte(name)); id != 0 {
			view = e.slots.Host(id).View()
		}
		rule := e.rules.set.Limits([]byte(name), view.Addr)
		switch {
		case view.Blocked != 0:
			why = explain.Reason{
				Kind: explain.TargetBlockedByOperator, Until: e.date(view.Blocked), Args: []any{name},
			}
		case rule.Block:
			why = explain.Reason{
				Kind: explain.TargetBlockedByRule, By: e.rules.set.Name(rule.SiteRule), Args: []any{name},
			}
		default:
			why = because(explain.TargetWasBlocked, name)
		}
	})

	return why
}
