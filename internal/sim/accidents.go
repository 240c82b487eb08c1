package sim

import (
	"math/rand/v2"
	"net/netip"

	"urlserver/configs"
)

// accidents gives some hosts a zone or a robots.txt that makes trouble.
func (w *world) accidents() {
	rng := rand.New(rand.NewPCG(w.sc.Seed, 6))
	var habits [zones]uint8
	first := rng.IntN(zones)
	for i := range habits {
		habits[(first+i)%zones] = w.zoneOf(i)
	}
	for i := range w.hosts {
		s := &w.hosts[i]
		if _, err := netip.ParseAddr(s.name); err != nil {
			s.zone = habits[w.zone(uint32(i))]
		}
		if habit := w.robotsOf(rng); habit != 0 && !w.blockedByRule(uint32(i)) {
			s.robots = habit
		}
	}
	for i := range w.hosts {
		if s := &w.hosts[i]; s.robots == robotsDetour {
			s.next = w.detourTarget(rng)
		}
	}
}

// markSound sets sound for hosts without trouble. A host has trouble if a host at the same address
// has, or has a poison or endless document. A neighbour that answers 503, or has a Crawl-delay, is
// no trouble.
func (w *world) markSound() {
	if w.sc.Trouble.Neighbours {
		for i := range w.hosts {
			w.hosts[i].sound = !w.hosts[i].closed && w.hosts[i].delay == 0
		}
		return
	}
	inTrouble := make([]bool, w.sc.Addresses)
	taint := func(h uint32) {
		for _, a := range w.hosts[h].addrs {
			inTrouble[a] = true
		}
	}
	for i := range w.hosts {
		if w.troubled(uint32(i)) {
			taint(uint32(i))
		}
	}
	for i := range w.docs {
		if k := w.docs[i].kind; k == poison || k == endless {
			taint(w.docs[i].host)
		}
	}
	for i := range w.hosts {
		s := &w.hosts[i]
		s.sound = !inTrouble[s.addrs[0]]
	}
}

const zones = 40 // zones of the hosts' names; each has the same number of hosts

// zone returns the number of a host's zone.
func (w *world) zone(i uint32) int { return int(i) * zones / len(w.hosts) }

// zoneOf returns the behaviour of zone n. Each behaviour gets its share of the zones.
func (w *world) zoneOf(n int) uint8 {
	t, u := &w.sc.Trouble, (float64(n)+0.5)/zones
	switch {
	case u < t.Broken:
		return zoneBroken + uint8(n%2)
	case u < t.Broken+t.Shaky:
		return zoneShaky
	case u < t.Broken+t.Shaky+t.SlowZones:
		return zoneSlow
	}
	return zoneFine
}

// robotsOf draws a robots.txt that makes trouble; 0: none.
func (w *world) robotsOf(rng *rand.Rand) uint8 {
	t, u := &w.sc.Trouble, rng.Float64()
	for habit, share := range []float64{robotsHangs: t.Hanging, robotsHuge: t.Huge, robotsCostly: t.Costly,
		robotsDetour: t.Detours} {
		if u < share {
			return uint8(habit)
		}
		u -= share
	}
	return 0
}

// troubled reports whether a host itself has trouble. A long or costly robots.txt is trouble, too,
// because only its own host waits for it.
func (w *world) troubled(i uint32) bool {
	s := &w.hosts[i]
	fine := s.robots == robotsNone || s.robots == robotsRules || s.robots == robotsDelay
	return !fine || s.zone != zoneFine || s.dead || s.flaky || s.overloaded || s.stay > 0 ||
		w.blockedByRule(i)
}

const (
	blockedEach = 50 // a rule blocks one of so many hosts, if some robots.txt redirect to blocked hosts
	blockedMost = 20 // most hosts that the rule blocks
)

func (w *world) blockedByRule(i uint32) bool {
	return w.sc.Trouble.Detours > 0 && i%blockedEach == blockedEach-1 && i < blockedMost*blockedEach
}

// blockRules returns a rule that blocks some hosts.
func (sc *Scenario) blockRules() []configs.HostRule {
	rule := configs.HostRule{Block: true}
	for i := uint32(blockedEach - 1); i < uint32(min(sc.Hosts, blockedMost*blockedEach)); i += blockedEach {
		rule.Hosts = append(rule.Hosts, hostName(i))
	}
	return []configs.HostRule{rule}
}

// detourTarget returns a host that a redirect does not get past: one that a rule blocks, or one
// with other trouble.
func (w *world) detourTarget(rng *rand.Rand) uint32 {
	for range 100 {
		i := uint32(rng.IntN(len(w.hosts)))
		if rng.IntN(2) == 0 {
			i = i%blockedMost*blockedEach + blockedEach - 1
		}
		if int(i) < len(w.hosts) && w.troubled(i) {
			return i
		}
	}
	return 0
}

// serve makes the oracle check that documents of hosts without trouble are served soon.
func (r *run) serve() {
	r.oracle.service = &service{debts: make([]debt, r.sc.Documents)}
	docs := make([][]uint32, len(r.world.hosts))
	for n := range r.world.docs {
		if p := &r.world.docs[n]; r.world.hosts[p.host].sound && p.kind < poison {
			docs[p.host] = append(docs[p.host], uint32(n))
		}
	}
	for h, of := range docs {
		if addr, ok := r.world.addressAt(uint32(h), 0); ok {
			r.oracle.owe(of, r.world.hosts[h].name, addr)
		}
	}
}

// servable reports whether name servers answer and a sound spider has room.
func (r *run) servable() bool {
	if r.now < max(r.names.down, r.names.sick) {
		return false
	}
	for _, s := range r.spiders {
		if s.sound() && r.oracle.hasRoom(s.conn.id) {
			return true
		}
	}
	return false
}
