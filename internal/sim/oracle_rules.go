package sim

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"urlserver/configs"
)

// ruling is what the settings say about requests to a host at an address.
type ruling struct {
	gap    float64 // of the site, ns
	open   int     // of the site
	block  bool
	group  string
	raises float64 // gap of the site by a rule by hosts, which may raise its address; 0: none
	more   int     // the same of open requests

	aboveGap  float64 // of the address or the shared network; 0: a rule says nothing
	aboveOpen int
	network   string // the shared network
}

// rulingOf looks at the rules one after the other, for the site and for the address.
func (l *limits) rulingOf(name string, addr netip.Addr) ruling {
	r := ruling{gap: l.siteGap, open: l.siteOpen}
	for i := range l.rules {
		if l.rulesSite(&l.rules[i], name, addr, &r) {
			break
		}
	}
	for i := range l.rules {
		if l.rulesAddress(&l.rules[i], addr, &r) {
			break
		}
	}
	return r
}

func gapOf(perSec, otherwise float64) float64 {
	if perSec > 0 {
		return 1e9 / perSec
	}
	return otherwise
}

// rulesSite puts what a rule says about a site into r. It returns false if the rule says nothing
// about it.
func (l *limits) rulesSite(rule *configs.HostRule, name string, addr netip.Addr, r *ruling) bool {
	switch {
	case matches(rule, name):
		r.gap, r.open = gapOf(rule.PerSec, l.siteGap), cmp.Or(rule.Concurrent, l.siteOpen)
		r.raises, r.more = gapOf(rule.PerSec, 0), rule.Concurrent
	case !contains(rule, addr):
		return false
	case rule.SitePerSec == 0 && rule.SiteConcurrent == 0 && !rule.Block && rule.Group == "" &&
		(rule.PerSec > 0 || rule.Concurrent > 0 || rule.Shared):
		return false
	default:
		r.gap, r.open = gapOf(rule.SitePerSec, l.siteGap), cmp.Or(rule.SiteConcurrent, l.siteOpen)
	}
	r.block, r.group = rule.Block, rule.Group
	return true
}

// rulesAddress does the same for an address.
func (l *limits) rulesAddress(rule *configs.HostRule, addr netip.Addr, r *ruling) bool {
	if !contains(rule, addr) {
		return false
	}
	if !rule.Shared {
		r.aboveGap, r.aboveOpen = gapOf(rule.PerSec, 0), rule.Concurrent
		return true
	}
	r.network = networkOf(rule)
	first := slices.IndexFunc(l.rules,
		func(one configs.HostRule) bool { return networkOf(&one) == r.network })
	rule = &l.rules[first]
	r.aboveGap = gapOf(rule.PerSec, gapOf(rule.SitePerSec, l.siteGap)/10)
	r.aboveOpen = cmp.Or(rule.Concurrent, 10*cmp.Or(rule.SiteConcurrent, l.siteOpen))
	return true
}

// networkOf returns the name of a rule's shared network, or "".
func networkOf(rule *configs.HostRule) string {
	if !rule.Shared {
		return ""
	}
	return cmp.Or(rule.Name, rule.Networks[0].String())
}

func matches(rule *configs.HostRule, name string) bool {
	return slices.ContainsFunc(rule.Hosts, func(p string) bool {
		return p == "*" || p == name || strings.HasPrefix(p, "*.") && strings.HasSuffix(name, p[1:])
	})
}

func contains(rule *configs.HostRule, addr netip.Addr) bool {
	return slices.ContainsFunc(rule.Networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// groupOf returns the group of a host at an address.
func (o *oracle) groupOf(h *host, addr netip.Addr) *group {
	switch r := o.set.rulingOf(h.name, addr); {
	case r.group != "":
		return o.group(r.group)
	case r.network != "":
		return o.groupNamed("site "+h.name, ofSite)
	}
	return o.address(addr)
}

// whereOf returns the record of an address that a host is at; nil: that is in a shared network.
func (o *oracle) whereOf(h *host, addr netip.Addr) *group {
	if o.set.rulingOf(h.name, addr).network != "" {
		return nil
	}
	return o.address(addr)
}

// network returns the record of a shared network.
func (o *oracle) network(r ruling) *group { return o.groupNamed("network "+r.network, ofNetwork) }

// raised returns the gap and the open requests of an address. What no rule by networks says is that
// of the settings, raised as far as rules by hosts allow for all hosts that are certainly there.
func (o *oracle) raised(a *group) (gap float64, open int) {
	if len(o.set.rules) == 0 {
		return o.set.gap, o.set.concurrent
	}
	var own ruling
	for i := range o.set.rules {
		if o.set.rulesAddress(&o.set.rules[i], a.addr, &own) {
			break
		}
	}
	kept := a.bound[:0]
	for _, s := range a.bound {
		if s.over(a) {
			continue
		}
		r := o.set.rulingOf(s.host.name, s.host.addr)
		if r.raises == 0 {
			r.raises = o.set.gap
		}
		r.raises, r.more = min(r.raises, o.set.gap), max(r.more, o.set.concurrent)
		if len(kept) == 0 {
			gap, open = r.raises, r.more
		}
		gap, open = max(gap, r.raises), min(open, r.more)
		kept = append(kept, s)
	}
	if a.bound = kept; len(kept) == 0 {
		gap, open = o.set.gap, o.set.concurrent
	}
	if own.aboveGap > 0 {
		gap = own.aboveGap
	}
	return gap, cmp.Or(own.aboveOpen, open)
}

// configure applies other settings. A host moves to another group at once, or when no request to it
// is open. Its open requests count for the new group from now on.
func (o *oracle) configure(set limits) {
	o.set, o.ruledAt = set, o.now
	for _, r := range set.rules {
		o.slowest = max(o.slowest, time.Duration(max(gapOf(r.PerSec, 0), gapOf(r.SitePerSec, 0))))
	}
	o.slowest = max(o.slowest, time.Duration(max(set.gap, set.siteGap)))
	for _, h := range o.hosts { // each by itself, whatever the order
		o.rehome(h)
		o.endBlocked(h)
	}
}

// rehome moves a host, with its held documents and its times, to another group or another address.
func (o *oracle) rehome(h *host) {
	h.join(nil)
	h.near(nil)
	if h.at == nil {
		return
	}
	addr := h.addr
	if h.going.IsValid() {
		addr = h.going
	}
	g := o.groupOf(h, addr)
	if g == h.at && addr == h.addr && o.whereOf(h, addr) == h.where {
		h.going = netip.Addr{}
		return
	}
	if h.open > 0 {
		if g.kind == ofRule {
			h.join(g)
		}
		if !h.going.IsValid() {
			h.near(o.overOf(h, addr))
		}
		return
	}
	if addr == h.addr {
		h.tells(o.overOf(h, addr))
	}
	o.addHeld(h.at, -h.held)
	if g.kind == ofRule {
		g.asked = g.asked || h.asked
		g.last, g.floor = max(g.last, h.last), max(g.floor, h.floor)
	}
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

// near records the address or the network that a host with open requests is to be at; nil: none.
func (h *host) near(g *group) {
	if h.toOver != nil {
		h.toOver.nearing -= h.open
	}
	if h.toOver = nil; g != nil && g != h.over {
		h.toOver = g
		g.nearing += h.open
		h.tells(g)
	}
}

// tells makes the last request to a host count for an address or a network, too.
func (h *host) tells(g *group) {
	g.asked = g.asked || h.asked
	g.last = max(g.last, h.last)
}

// overOf returns the record of the address, or of the shared network, that a host is on.
func (o *oracle) overOf(h *host, addr netip.Addr) *group {
	if where := o.whereOf(h, addr); where != nil {
		return where
	}
	return o.network(o.set.rulingOf(h.name, addr))
}

// enter puts a host into a group, at an address.
func (o *oracle) enter(h *host, g *group, addr netip.Addr) {
	h.at, h.addr, h.where = g, addr, o.whereOf(h, addr)
	h.stays++
	g.bound = append(g.bound, stay{host: h, n: h.stays})
	if h.where != nil && h.where != g {
		h.where.bound = append(h.where.bound, stay{host: h, n: h.stays})
	}
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

// strictest returns the longest gap and the fewest open requests of a rules' group, by the rules of
// the hosts that are certainly in it.
func (o *oracle) strictest(g *group) (gap float64, open int) {
	gap, open = 0, math.MaxInt
	kept := g.bound[:0]
	for _, s := range g.bound {
		if s.over(g) {
			continue
		}
		kept = append(kept, s)
		if s.host.to != nil {
			continue // its rule is for the group that it is to join
		}
		r := o.set.rulingOf(s.host.name, s.host.addr)
		gap, open = max(gap, r.gap), min(open, r.open)
	}
	g.bound = kept
	return gap, open
}
