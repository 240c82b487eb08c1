package sim

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"urlserver/docindex"
)

// With a seed, the days are full-sized: go test ./internal/sim -run TestDay -v -args -seed N. To
// repeat a failure of TestScenarios, run its scenario with the seed that the failure names.
var seedFlag = flag.Uint64("seed", 0,
	"seed of the simulation; 0: seed 1, and days of a twentieth of the size")

func seed() uint64 { return max(1, *seedFlag) }

func runScenario(t *testing.T, sc Scenario) Report {
	t.Helper()
	began := time.Now()
	report, err := Run(sc)
	if err != nil {
		t.Fatal(err)
	}
	s := &report.Stats
	if report.Served > 0 {
		t.Logf("%s, seed %d: %d documents of hosts without trouble, served within %v beyond their pace",
			sc.Kind, sc.Seed, report.Served, report.LongestWait.Round(time.Second))
	}
	t.Logf("%s, seed %d: %v simulated in %v: %d documents taken, %d lines (%d again), %d requests for "+
		"robots.txt, outcomes %v, %d stale, %d bad lines, %d lost, %d expired; %d steps",
		sc.Kind, sc.Seed, report.Virtual.Round(time.Second), time.Since(began).Round(time.Millisecond),
		report.Taken, report.Lines,
		report.Retries, report.Fetches, report.Outcomes, s.Stale, s.BadLines, s.Lost, s.Expired, report.Steps)
	return report
}

func small(t testing.TB, kind string, seed uint64) Scenario {
	t.Helper()
	sc, err := Small(kind, seed)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// long runs a scenario of full size, or of a twentieth of it if no seed was given.
func long(t *testing.T, kind string) {
	t.Helper()
	if testing.Short() {
		runScenario(t, small(t, kind, seed()))
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // memory for speed
	sc, err := Full(kind, seed())
	if err != nil {
		t.Fatal(err)
	}
	if *seedFlag == 0 {
		sc = sc.Part(20)
	}
	runScenario(t, sc)
}

func TestDay(t *testing.T)     { long(t, "day") }
func TestMillion(t *testing.T) { long(t, "million") }

// TestScenarios runs small scenarios. A run with the same seed is the same again, and one with another
// seed is another.
func TestScenarios(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			first := runScenario(t, small(t, kind, seed()))
			if again, err := Run(small(t, kind, seed())); err != nil || !reflect.DeepEqual(first, again) {
				t.Errorf("seed %d: %+v, and the second time %+v, %v", seed(), first, again, err)
			}
			for n := range seeds - 1 {
				if other := runScenario(t, small(t, kind, seed()+1+n)); other.Trace == first.Trace {
					t.Errorf("seeds %d and %d gave the same trace", seed(), seed()+1+n)
				}
			}
		})
	}
}

// TestPaceIsExact lets 200 healthy spiders crawl one group. The daemon must send one document per
// gap, none later.
func TestPaceIsExact(t *testing.T) {
	sc := small(t, "crowd", seed())
	sc.Day, sc.Heal, sc.End, sc.Trouble = 0, 0, 0, Trouble{}
	sc.Config.ReqHostConcurrent, sc.Config.ReqHostPerSec, sc.Config.Politeness.DelayFactor = 1, 0.5, 0
	report := runScenario(t, sc)
	least := 2 * time.Second * time.Duration(sc.Documents)
	if most := least + 10*time.Second; report.Virtual < least || report.Virtual > most {
		t.Errorf("%d documents at one in 2s took %v; want %v to %v", sc.Documents, report.Virtual,
			least, most)
	}
}

func TestEverythingHealthyIsDone(t *testing.T) {
	sc := small(t, "healthy", seed())
	sc.Trouble = Trouble{}
	report := runScenario(t, sc)
	if done := report.Outcomes[docindex.Done]; done != sc.Documents || report.Retries != 0 {
		t.Errorf("%d of %d documents are done, with %d retries; want all, with none", done, sc.Documents,
			report.Retries)
	}
}

func TestFailureNamesWhatRepeatsIt(t *testing.T) {
	sc := small(t, "healthy", 7)
	sc.Last = time.Minute // not enough
	_, err := Run(sc)
	var f *Failure
	var c *Complaint
	if !errors.As(err, &f) || !errors.As(err, &c) || c.Rule != RuleProgress {
		t.Fatalf("run without the time that it needs: %v; want a *Failure of rule %q", err, RuleProgress)
	}
	for _, part := range []string{`"healthy"`, "seed 7", fmt.Sprintf("%q", RuleProgress)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %s", err, part)
		}
	}
}

func TestKindsAreKnown(t *testing.T) {
	for _, make := range []func(string, uint64) (Scenario, error){Small, Full} {
		if _, err := make("weekend", 1); err == nil || !strings.Contains(err.Error(), `"weekend"`) {
			t.Errorf("scenario of no known kind: %v; want an error that names it", err)
		}
	}
}

// FuzzSeeds looks for a seed that breaks a rule.
func FuzzSeeds(f *testing.F) {
	f.Add(uint64(0), uint8(0)) // TestScenarios has more
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8) {
		if _, err := Run(small(t, Kinds()[int(kind)%len(Kinds())], seed)); err != nil {
			t.Error(err)
		}
	})
}
