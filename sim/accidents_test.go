package sim

import "testing"

// TestWorldOfAccidents wants hosts with troubles, and enough without.
func TestWorldOfAccidents(t *testing.T) {
	for _, kind := range unfixed() {
		sc := small(t, kind, seed())
		w := newWorld(&sc)
		var zones [zoneSilent + 1]int
		var robots [robotsDetour + 1]int
		sound := 0
		for i := range w.hosts {
			s := &w.hosts[i]
			zones[s.zone]++
			robots[s.robots]++
			if s.sound {
				sound++
			}
			if s.sound && w.troubled(uint32(i)) {
				t.Errorf("%s: %s is sound, and has trouble: %+v", kind, s.name, s)
			}
			if s.robots == robotsDetour && !w.troubled(s.next) {
				t.Errorf("%s: robots.txt of %s redirects to %s, which has no trouble", kind, s.name, w.hosts[s.next].name)
			}
		}
		t.Logf("%s, seed %d: %d hosts, %d of them sound; zones %v, robots.txt %v", kind, seed(), sc.Hosts, sound, zones, robots)
		if sound < sc.Hosts/10 || sc.Trouble.Poison == 0 && sound == sc.Hosts {
			t.Errorf("%s: %d of %d hosts are sound", kind, sound, sc.Hosts)
		}
	}
}
