package sim

import (
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"urlserver/configs"
)

// startOperator plans the actions of an operator (pauses, blocks, changed settings and rules),
// steps of the wall clock, and outages of the index.
func (r *run) startOperator() {
	t := &r.sc.Trouble
	r.every(func() time.Duration { return t.Pause }, r.pause)
	r.every(func() time.Duration { return t.Block }, r.block)
	r.every(func() time.Duration { return t.Rates }, r.reconfigure)
	r.every(func() time.Duration { return t.Rules }, r.setRules)
	r.every(func() time.Duration { return t.WallStep },
		func() { r.drift += time.Duration(2*r.rng.IntN(2)-1) * time.Hour })
	r.every(func() time.Duration { return t.Outage }, func() {
		r.outbox.outage = true
		r.after(r.between(time.Second, 10*time.Minute), func() { r.outbox.outage = false })
	})
}

func (r *run) pause() {
	set := func(on bool) func() {
		return func() {
			r.engine.Pause(on)
			r.oracle.disable(paused, on)
		}
	}
	set(true)()
	r.after(r.between(0, 2*time.Minute), set(false))
}

func (r *run) block() {
	name := r.world.hosts[r.rng.IntN(len(r.world.hosts))].name
	d := r.between(time.Second, 20*time.Minute)
	r.engine.Block([]byte(name), d)
	r.oracle.block(name, r.now+d)
	if r.rng.IntN(3) == 0 {
		r.after(r.between(0, time.Minute), func() {
			r.engine.Block([]byte(name), 0)
			r.oracle.block(name, 0)
		})
	}
}

func (r *run) reconfigure() {
	c := &r.sc.Config
	c.ReqHostPerSec = []float64{0.2, 0.5, 1, 2, 7}[r.rng.IntN(5)]
	c.ReqHostConcurrent = 1 + r.rng.IntN(4)
	c.Politeness.SitePerSec = []float64{0, 0.1, 0.5, 3}[r.rng.IntN(4)]
	c.Politeness.SiteConcurrent = r.rng.IntN(3)
	c.QueueLen = 1 + r.rng.IntN(100)
	c.Spider.MaxInFlight = 10 + r.rng.IntN(1000)
	c.Politeness.DelayFactor = float64(r.rng.IntN(3))
	c.Politeness.Patience = r.between(0, time.Minute)
	r.configure()
}

// configure applies the settings to the engine and the oracle.
func (r *run) configure() {
	r.engine.Reconfigure(r.sc.Config)
	r.oracle.configure(limitsOf(r.sc.Config, r.sc.Exact))
}

func (r *run) setRules() {
	r.sc.Config.Rules = someRules(r.rng, r.sc)
	r.configure()
}

// someRules returns random rules for hosts by name and by address. Few of them match many hosts.
func someRules(rng *rand.Rand, sc *Scenario) (rules []configs.HostRule) {
	for range 1 + rng.IntN(8) {
		rule := configs.HostRule{}
		for range 1 + rng.IntN(4) {
			rule.Hosts = append(rule.Hosts, hostName(uint32(rng.IntN(sc.Hosts))))
		}
		switch rng.IntN(8) {
		case 0:
			rule.Hosts = []string{[]string{"*.example", "*"}[rng.IntN(2)]}
		case 1, 2, 3:
			addr := address(uint32(rng.IntN(sc.Addresses)))
			network, err := addr.Prefix(addr.BitLen() - rng.IntN(7))
			if err != nil {
				panic(err) // an address of ours has such a prefix
			}
			rule.Networks = append(rule.Networks, network)
		}
		fillRule(rng, sc, &rule)
		if len(rule.Networks) > 0 && rng.IntN(2) == 0 {
			rule.Hosts = nil
			fillNetworkRule(rng, &rule)
		}
		rules = append(rules, rule)
	}
	return rules
}

// sharedRules returns the rule of a shared network that most addresses are in.
func sharedRules(perSec float64, concurrent int) []configs.HostRule {
	return []configs.HostRule{{Networks: []netip.Prefix{netip.PrefixFrom(address(0), 24),
		netip.PrefixFrom(address(15), 96).Masked()}, PerSec: perSec, Concurrent: concurrent,
		Shared: true, Name: "cdn"}}
}

// fillNetworkRule sets some fields of a rule that has networks and no hosts.
func fillNetworkRule(rng *rand.Rand, rule *configs.HostRule) {
	if rng.IntN(2) == 0 {
		rule.SitePerSec = []float64{0.1, 0.4, 3}[rng.IntN(3)]
	}
	if rng.IntN(2) == 0 {
		rule.SiteConcurrent = 1 + rng.IntN(2)
	}
	if rng.IntN(2) == 0 {
		rule.Shared, rule.Group = true, ""
		rule.Name = "network-" + strconv.Itoa(rng.IntN(3))
	}
}

// fillRule sets some fields of a rule at random.
func fillRule(rng *rand.Rand, sc *Scenario, rule *configs.HostRule) {
	if rng.IntN(2) == 0 {
		rule.PerSec = []float64{0.05, 0.2, 0.7, 5, 50}[rng.IntN(5)]
	}
	if rng.IntN(2) == 0 {
		rule.Concurrent = 1 + rng.IntN(min(5, sc.Config.QueueLen))
	}
	rule.Block = rng.IntN(8) == 0
	if rng.IntN(3) == 0 {
		rule.Group = "group-" + strconv.Itoa(rng.IntN(3))
	}
}
