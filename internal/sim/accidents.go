package sim

import (
	"math/rand/v2"
	"net/netip"

	"urlserver/configs"
)

// accidents gives hosts the troubles of their zones and of their robots.txt.
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
		if habit := w.robotsOf(rng); habit != 0 && !w.barred(uint32(i)) {
			s.robots = habit
		}
	}
	for i := range w.hosts {
		if s := &w.hosts[i]; s.robots == robotsDetour {
			s.next = w.trap(rng)
		}
	}
}

// judge finds out which hosts have no trouble of their own, nor share an address with one that has,
// nor have a document that kills its spider.
func (w *world) judge() {
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

const zones = 40 // that the names of hosts are in, as many in each

// zone is the number of a host's zone.
func (w *world) zone(i uint32) int { return int(i) * zones / len(w.hosts) }

// zoneOf draws the habit of zone n, so that each habit has its share.
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

// robotsOf draws the habit of a robots.txt that is an accident; 0: none is.
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

// troubled says whether a host has a trouble of its own. Robots.txt that are long or cost much are
// troubles of their own, too: such a host pays for them.
func (w *world) troubled(i uint32) bool {
	s := &w.hosts[i]
	fine := s.robots == robotsNone || s.robots == robotsRules || s.robots == robotsDelay
	return !fine || s.zone != zoneFine || s.dead || s.flaky || s.overloaded || s.stay > 0 || w.barred(i)
}

const (
	barredEach = 50 // hosts, of which a rule blocks one where there are detours
	barredMost = 20 // hosts that a rule blocks
)

func (w *world) barred(i uint32) bool {
	return w.sc.Trouble.Detours > 0 && i%barredEach == barredEach-1 && i < barredMost*barredEach
}

// bars are rules that block some hosts.
func (sc *Scenario) bars() []configs.HostRule {
	rule := configs.HostRule{Block: true}
	for i := uint32(barredEach - 1); i < uint32(min(sc.Hosts, barredMost*barredEach)); i += barredEach {
		rule.Hosts = append(rule.Hosts, hostName(i))
	}
	return []configs.HostRule{rule}
}

// trap is a host where a redirect gets stuck: one that a rule blocks, or one in some other trouble.
func (w *world) trap(rng *rand.Rand) uint32 {
	for range 100 {
		i := uint32(rng.IntN(len(w.hosts)))
		if rng.IntN(2) == 0 {
			i = i%barredMost*barredEach + barredEach - 1
		}
		if int(i) < len(w.hosts) && w.troubled(i) {
			return i
		}
	}
	return 0
}

// serve tells the oracle what hosts are without trouble.
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
			r.oracle.owe(of, addr)
		}
	}
}

// servable says whether name servers answer, and a spider is well and has room.
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
