package engine

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/urlserver/explain"
)

// ruleStep is how many hosts a step puts under changed rules: about a millisecond's worth.
const ruleStep = 4096

// hostRules has the operator's rules and how far they are applied: to the hosts below next, and to
// each other host from its next turn on. The doc index is asked for nothing until they are applied
// to all hosts.
type hostRules struct {
	set  *configs.RuleSet
	next uint32 // the host that the next step begins with; 0: the rules are in force for all hosts
}

// setRules puts rules in force.
func (e *Engine) setRules(rules []configs.HostRule) {
	if e.rules.set != nil && slices.EqualFunc(rules, e.cfg.Rules, configs.HostRule.Equal) {
		return
	}
	e.rules = hostRules{set: configs.NewRuleSet(rules), next: 1}
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

// areRulesApplied applies the rules to a host that is about to be requested if no step has done so
// since they changed. It returns false if that changed anything: the host may have to wait now.
func (e *Engine) areRulesApplied(host uint32) bool {
	if e.rules.next == 0 || host < e.rules.next {
		return true
	}
	before := e.slots.Host(host).Limits()
	return !e.regroup(host) && e.slots.Host(host).Limits() == before
}

// regroup applies the rules to a bound host, and moves it to the group that follows from the rules
// and its address, the new one if it has changed. away: the host leaves its group, now or when no
// request to it is open.
func (e *Engine) regroup(host uint32) (away bool) {
	to, moves := e.dns.addresses.moved[host]
	if _, bound := e.slots.Host(host).GroupID(); !bound || faulty(faultRules) {
		delete(e.dns.addresses.moved, host)
		return false // it is when it will be bound
	}
	addr := e.slots.Host(host).Addr()
	if moves {
		addr = to
	}
	r := e.ruleFor(host, addr)
	if e.isIn(host, r.Group, addr) && addr == e.slots.Host(host).Addr() {
		delete(e.dns.addresses.moved, host)
		if e.opt.Lease > 0 && moves {
			e.binding(host).addr = addr
		}
		e.slots.Host(host).CancelMove(e.now)
		e.slots.Host(host).SetLimits(e.now, limits(r))
		e.endBlockedFetches(host)
		return false
	}
	bind := e.opt.Lease == 0 || e.slots.Host(host).Settled() // the reservation is asked for what is needed
	if e.slots.Host(host).Move(e.now, hostslots.GroupIDOf(r.Group, addr.As16()), limits(r), moves) {
		delete(e.dns.addresses.moved, host)
		if bind {
			e.bind(host, addr)
		}
	}
	return true
}

// bindTo applies the rules to a host and puts it into a group: the one with the given name, or the
// address's.
func (e *Engine) bindTo(host uint32, group string, addr netip.Addr) {
	if !e.isIn(host, group, addr) {
		e.slots.Host(host).Unbind(e.now) // under the limits that it had
	}
	e.slots.Host(host).SetLimits(e.now, limits(e.ruleFor(host, addr)))
	e.nameFound(host)
	a := e.dns.addresses.of(host)
	a.until, a.gone, a.fresh = 0, false, false
	if group == "" {
		e.slots.Host(host).Bind(e.now, addr)
	} else {
		e.slots.Host(host).BindNamed(e.now, group, addr)
	}
	e.endBlockedFetches(host)
}

func (e *Engine) isIn(host uint32, group string, addr netip.Addr) bool {
	key, bound := e.slots.Host(host).GroupID()
	return bound && key == hostslots.GroupIDOf(group, addr.As16())
}

func (e *Engine) ruleFor(host uint32, addr netip.Addr) configs.HostRule {
	r := e.rules.set.Rule(e.rules.set.Match(e.slots.Host(host).Name(), addr))
	if faulty(faultGroup) {
		r.Group = ""
	}
	return r
}

// limits converts a rule for the slots.
func limits(r configs.HostRule) hostslots.Limits {
	l := hostslots.Limits{Concurrent: r.Concurrent, Blocked: r.Block}
	if r.PerSec > 0 {
		l.Gap = gap(r.PerSec)
	}
	return l
}

func gap(perSec float64) time.Duration {
	return time.Duration(math.Ceil(float64(time.Second) / perSec))
}

// widest returns the most concurrent requests that any rule allows; 0: no rule says.
func widest(rules []configs.HostRule) (most int) {
	for _, r := range rules {
		most = max(most, r.Concurrent)
	}
	return most
}

// paceRule names what sets the ordinary gap of a host's group.
func (e *Engine) paceRule(x *Explanation) string {
	return x.ruleOr(x.Limits.Gap == x.Base, gap(e.cfg.ReqHostPerSec) == x.Base, "Req_Host_Per_Sec")
}

// openRule names what sets how many requests to a host's group may be open.
func (e *Engine) openRule(x *Explanation) string {
	return x.ruleOr(x.Limits.Concurrent == x.Concurrent, e.cfg.ReqHostConcurrent == x.Concurrent, "Req_Host_Concurrent")
}

// ruleOr names the host's rule, or the setting for all, or a rule of a host beside it.
func (x *Explanation) ruleOr(own, usual bool, setting string) string {
	switch {
	case own:
		return x.Rule
	case usual:
		return setting
	}
	return explain.OtherRule(x.group())
}
