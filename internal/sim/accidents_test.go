package sim

import (
	"runtime/debug"
	"testing"
)

// TestAccidents runs days of accidents: one of each kind with 10,000 documents; with a seed, as in
// make sim, twenty with 50,000, each kind in turn and each with the next seed.
func TestAccidents(t *testing.T) {
	if testing.Short() {
		t.Skip("TestScenarios has small ones")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // memory for speed
	runs, part := len(accidental()), 100
	if *seedFlag != 0 {
		runs, part = 20, 20
	}
	documents := 0
	for i := range runs {
		sc, err := Full(accidental()[i%len(accidental())], seed()+uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		documents += runScenario(t, sc.Part(part)).Taken
	}
	t.Logf("%d documents", documents)
}

// TestWorldOfAccidents checks that the world has hosts with trouble, and enough without.
func TestWorldOfAccidents(t *testing.T) {
	for _, kind := range accidental() {
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
				t.Errorf("%s: robots.txt of %s redirects to %s, which has no trouble", kind, s.name,
					w.hosts[s.next].name)
			}
		}
		t.Logf("%s, seed %d: %d hosts, %d of them sound; zones %v, robots.txt %v", kind, seed(), sc.Hosts,
			sound, zones, robots)
		if sound < sc.Hosts/10 || sc.Trouble.Poison == 0 && sound == sc.Hosts {
			t.Errorf("%s: %d of %d hosts are sound", kind, sound, sc.Hosts)
		}
	}
}
