package sim

import (
	"net/netip"
	"strings"
	"time"

	"urlserver/configs"
)

// ruleOf returns the first rule for a host at an address. It looks at the rules one after the
// other.
func (l *limits) ruleOf(name string, addr netip.Addr) configs.HostRule {
	for _, r := range l.rules {
		for _, p := range r.Hosts {
			if p == "*" || p == name || strings.HasPrefix(p, "*.") && strings.HasSuffix(name, p[1:]) {
				return r
			}
		}
		for _, n := range r.Networks {
			if n.Contains(addr) {
				return r
			}
		}
	}
	return configs.HostRule{}
}

// groupOf returns the group of a host at an address.
func (o *oracle) groupOf(h *host, addr netip.Addr) *group {
	if name := o.set.ruleOf(h.name, addr).Group; name != "" {
		return o.group(name)
	}
	return o.group(addr.String())
}

// configure applies other settings. A host moves to another group at once, or when no request to it
// is open. Its open requests count for the new group from now on.
func (o *oracle) configure(set limits) {
	o.set, o.ruledAt = set, o.now
	for _, r := range set.rules {
		o.slowest = max(o.slowest, time.Duration(set.gapOf(r)))
	}
	o.slowest = max(o.slowest, time.Duration(set.gap))
	for _, h := range o.hosts { // each by itself, whatever the order
		o.rehome(h)
		o.endBlocked(h)
	}
}

// rehome moves a host, with its held documents and its times, to another group or another address.
func (o *oracle) rehome(h *host) {
	h.join(nil)
	if h.at == nil {
		return
	}
	addr := h.addr
	if h.going.IsValid() {
		addr = h.going
	}
	g := o.groupOf(h, addr)
	if g == h.at && addr == h.addr {
		h.going = netip.Addr{}
		return
	}
	if h.open > 0 {
		if !h.going.IsValid() { // else what is open is at another machine
			h.join(g)
		}
		return
	}
	o.addHeld(h.at, -h.held)
	if !h.going.IsValid() { // else it was another machine that was asked
		g.asked = g.asked || h.at.asked
		g.last = max(g.last, h.last)
	}
	g.floor = max(g.floor, h.floor)
	h.going = netip.Addr{}
	o.enter(h, g, addr)
}

// join records the group that a host is to join; nil: none.
func (h *host) join(g *group) {
	if h.to != nil {
		h.to.joining -= h.open
	}
	if h.to = g; g != nil {
		g.joining += h.open
	}
}

// enter puts a host into a group.
func (o *oracle) enter(h *host, g *group, addr netip.Addr) {
	h.at, h.addr = g, addr
	h.stays++
	g.bound = append(g.bound, stay{host: h, n: h.stays})
	o.addHeld(g, h.held)
	h.knows(g)
	h.slow()
}

// knows records that a host may be in a group.
func (h *host) knows(g *group) {
	g.longest = max(g.longest, h.longest)
	for _, known := range h.groups {
		if known == g {
			return
		}
	}
	h.groups = append(h.groups, g)
}

// gapOf returns the gap of a rule, or the ordinary one if the rule has none.
func (l *limits) gapOf(r configs.HostRule) float64 {
	if r.PerSec > 0 {
		return 1e9 / r.PerSec
	}
	return l.gap
}

func (l *limits) openOf(r configs.HostRule) int {
	if r.Concurrent > 0 {
		return r.Concurrent
	}
	return l.concurrent
}

// strictest returns a group's longest gap and fewest open requests, by the rules of the hosts that
// are certainly in it.
func (o *oracle) strictest(g *group) (gap float64, open int) {
	if len(o.set.rules) == 0 {
		return o.set.gap, o.set.concurrent
	}
	kept := g.bound[:0]
	for _, s := range g.bound {
		if s.over(g) {
			continue
		}
		kept = append(kept, s)
		if s.host.to != nil {
			continue // its rule is for the group that it is to join
		}
		r := o.set.ruleOf(s.host.name, s.host.addr)
		if gap == 0 {
			gap, open = o.set.gapOf(r), o.set.openOf(r)
		}
		gap, open = max(gap, o.set.gapOf(r)), min(open, o.set.openOf(r))
	}
	g.bound = kept
	return gap, open
}
