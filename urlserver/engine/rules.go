package engine

import (
	"math"
	"net/netip"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
)

// ruleStep is how many hosts a step puts under changed rules: about a millisecond's worth.
const ruleStep = 4096

// hostRules has the operator's rules and how far they are applied: to the hosts below next.
// Nothing is sent, and the doc index is asked for nothing, until they are applied to all hosts: a
// host whose turn comes later may belong to the same group as one that is due, or be at its
// address.
type hostRules struct {
	set    *configs.RuleSet
	next   uint32 // the host that the next step begins with; 0: the rules are in force for all hosts
	former configs.FormerRules
}

// UnsharedFor returns how long an address is left alone that was on a shared network until a
// reload, if daemons share leases. On a shared network requests do not need the lease of the
// address. So the daemon that leases the address now does not know when others requested it: the
// spiders or URL Frontier clients of this daemon, or another daemon, which may read its settings a
// little later.
func UnsharedFor(cfg *configs.Config, lease time.Duration) time.Duration {
	return max(lease, gap(cfg.AddressPace().PerSec))
}

// setRules puts rules in force.
func (e *Engine) setRules(cfg configs.Config) {
	if e.rules.set != nil && cfg.SameRules(e.cfg) {
		return
	}
	former := e.rules.former
	if e.rules.set != nil && e.opt.Lease > 0 {
		former.Add(e.cfg, e.rules.set, e.now, e.now+UnsharedFor(&cfg, e.opt.Lease))
	}
	e.rules = hostRules{set: cfg.RuleSet(), next: 1, former: former}
	e.leases.slices.set(e.now, e.slots, e.rules.set.SharedNetworks())
}

// applyRules applies changed rules to some of the known hosts.
func (e *Engine) applyRules() {
	for host := e.slots.Movable(e.now); host != 0; host = e.slots.Movable(e.now) {
		e.regroup(host)
	}
	if e.rules.next != 0 {
		e.rules.next = e.slots.Hosts(e.rules.next, ruleStep, func(host uint32) { e.regroup(host) })
	}
}

// regroup applies the rules to a bound host, and moves it to the group that follows from the rules
// and its address, the new one if it has changed. away: the host leaves its group, now or when no
// request to it is open.
func (e *Engine) regroup(host uint32) (away bool) {
	to, moves := e.dns.addresses.moved[host]
	if _, bound := e.slots.Host(host).GroupID(); !bound || faulty(FaultRules) {
		delete(e.dns.addresses.moved, host)
		return false // the rules are applied to it when it is bound
	}
	addr := e.slots.Host(host).Addr()
	if moves {
		addr = to
	}
	place := e.place(host, addr)
	if e.slots.Host(host).IsAt(place) {
		delete(e.dns.addresses.moved, host)
		if e.opt.Lease > 0 && moves {
			e.binding(host).addr = addr
		}
		e.slots.Host(host).CancelMove(e.now)
		e.slots.Host(host).SetPlaceLimits(e.now, place)
		e.endBlockedFetches(host)
		return false
	}
	bind := e.opt.Lease == 0 || e.slots.Host(host).Settled() // the reservation is asked only for hosts with work
	if e.slots.Host(host).Move(e.now, place, moves) {
		delete(e.dns.addresses.moved, host)
		if bind {
			e.bind(host, addr)
		}
	}
	return true
}

// bindTo puts a host into a group, under the limits of its place.
func (e *Engine) bindTo(host uint32, place hostslots.Place) {
	e.nameFound(host)
	a := e.dns.addresses.of(host)
	a.until, a.gone, a.fresh = 0, false, false
	e.slots.Host(host).Bind(e.now, place)
	e.endBlockedFetches(host)
}

// place returns where a host belongs at an address, by the rules.
func (e *Engine) place(host uint32, addr netip.Addr) hostslots.Place {
	r := e.limitsFor(host, addr)
	p := hostslots.Place{
		Addr: addr, Group: r.Group,
		Site: hostslots.Limits{
			Gap: gap(r.Site.PerSec), Concurrent: r.Site.Concurrent, Blocked: r.Block, Raises: r.Raises,
		},
		Address: hostslots.AddressLimits{Gap: gap(r.Address.PerSec), Concurrent: r.Address.Concurrent},
	}
	switch {
	case r.Shared != nil:
		p.Network = r.Shared.Name
		return p
	case r.Group != "" && e.opt.Lease > 0:
		p.Covered = e.isAddressIn(r.Group, addr)
	}
	p.LeftShared = e.rules.former.SharedUntil(e.slots.Host(host).Name(), addr, e.now)
	return p
}

// placeIn returns the place of a host in the group that the reservation has bound it to: an
// address, or the one with an alias. The rules may have changed since the reservation was asked.
// The hosts that are bound to an address of a shared network are one site meanwhile: their lease is
// that of the address, and the network's cap holds for them.
func (e *Engine) placeIn(host uint32, alias string, addr netip.Addr) hostslots.Place {
	p := e.place(host, addr)
	switch {
	case alias == e.alias(host, &p):
	case alias == "" && ownGroup(&p):
		p.Group = addr.String()
	default:
		p.Group = alias
		p.Covered = p.Network == "" && alias != "" && e.isAddressIn(alias, addr)
	}
	p.Covered = p.Covered || p.Network == "" && p.Group != "" && e.binding(host).covered
	return p
}

// isAddressIn reports whether a rule puts an address, as a host, into a group.
func (e *Engine) isAddressIn(group string, addr netip.Addr) bool {
	return e.rules.set.Limits([]byte(addr.String()), addr).Group == group
}

// alias returns what the reservation calls the group of a host at a place: the name of a rule's
// group, or the host's own name where it is a group by itself; "": it goes by its address.
func (e *Engine) alias(host uint32, p *hostslots.Place) string {
	if ownGroup(p) {
		return string(e.slots.Host(host).Name())
	}
	return p.Group
}

func (e *Engine) limitsFor(host uint32, addr netip.Addr) configs.HostLimits {
	r := e.rules.set.Limits(e.slots.Host(host).Name(), addr)
	if faulty(FaultGroup) {
		r.Group = ""
	}
	return r
}

// gap converts a pace; 0 stays 0.
func gap(perSec float64) time.Duration {
	if perSec == 0 {
		return 0
	}
	return time.Duration(math.Ceil(float64(time.Second) / perSec))
}

// widest returns the most concurrent requests to one address or site that any rule allows; 0: no
// rule says.
func widest(rules []configs.HostRule) (most int) {
	for _, r := range rules {
		if most = max(most, r.SiteConcurrent); !r.Shared {
			most = max(most, r.Concurrent)
		}
	}
	return most
}
