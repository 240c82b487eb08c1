//go:build faults

package sim

import (
	"testing"

	"urlserver/hostslots"
	"urlserver/urlserver/engine"
)

// bite is a rule broken on purpose, and what the oracle may complain of then.
type bite struct {
	name string
	kind string // of scenario
	set  func()
	want []Rule
}

func bites() []bite {
	return []bite{
		{name: "halved gap", kind: "healthy", set: func() { hostslots.Fault = hostslots.FaultGap },
			want: []Rule{RuleGapGroup, RuleStart, RuleCrawlDelay}},
		{name: "requests beyond the limit", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultConcurrent }, want: []Rule{RuleOpenGroup}},
		{name: "times forgotten with the slot", kind: "scarce",
			set:  func() { hostslots.Fault = hostslots.FaultForget },
			want: []Rule{RuleGapGroup, RuleCrawlDelay, RuleBackoff, RuleNotBefore, RuleFair}},
		{name: "times left behind by a host that moves", kind: "collide",
			set:  func() { hostslots.Fault = hostslots.FaultCarry },
			want: []Rule{RuleGapHost, RuleCrawlDelay, RuleNotBefore}},
		{name: "documents lost with a spider", kind: "storm",
			set: func() { hostslots.Fault = hostslots.FaultLose }, want: []Rule{RuleOutcome}},
		{name: "late statuses taken for live ones", kind: "storm",
			set: func() { hostslots.Fault = hostslots.FaultStale }, want: []Rule{RuleOutcome}},
		{name: "retries off the pace", kind: "storm",
			set:  func() { hostslots.Fault = hostslots.FaultRetry },
			want: []Rule{RuleGapGroup, RuleCrawlDelay, RuleFair, RuleBackoff}},
		{name: "Crawl-delay ignored", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultDelay }, want: []Rule{RuleCrawlDelay}},
		{name: "backing off ignored", kind: "day", set: func() { hostslots.Fault = hostslots.FaultBackoff },
			want: []Rule{RuleBackoff}},
		{name: "Retry-After ignored", kind: "day",
			set: func() { hostslots.Fault = hostslots.FaultRetryAfter }, want: []Rule{RuleNotBefore, RuleBackoff}},
		{name: "delay_factor ignored", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultFair }, want: []Rule{RuleFair}},
		{name: "sent right after the start", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultStart }, want: []Rule{RuleStart}},
		{name: "last in, first out", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultOrder }, want: []Rule{RuleOrder}},
		{name: "priority ignored", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultPriority }, want: []Rule{RuleOrder}},
		{name: "endless attempts", kind: "storm", set: func() { hostslots.Fault = hostslots.FaultAttempts },
			want: []Rule{RuleAttempts}},
		{name: "a held document taken again", kind: "day",
			set:  func() { hostslots.Fault = hostslots.FaultHeld },
			want: []Rule{RuleTwice, RuleLine, RuleOutcome, RuleHeld}},
		{name: "a TRANS_ID used again", kind: "healthy",
			set: func() { hostslots.Fault = hostslots.FaultGeneration }, want: []Rule{RuleTransaction}},
		{name: "blocked hosts asked", kind: "operator",
			set: func() { hostslots.Fault = hostslots.FaultBlock }, want: []Rule{RuleBlocked}},
		{name: "rules for hosts ignored", kind: "rules",
			set:  func() { hostslots.Fault = hostslots.FaultLimits },
			want: []Rule{RuleGapGroup, RuleGapHost, RuleOpenGroup, RuleOpenHost, RuleBarred, RuleStart}},
		{name: "groups of rules ignored", kind: "rules", set: func() { engine.Fault = engine.FaultGroup },
			want: []Rule{RuleGapGroup, RuleOpenGroup, RuleStart, RuleFair, RuleBackoff, RuleNotBefore, RuleCrawlDelay}},
		{name: "changed rules ignored", kind: "rules", set: func() { engine.Fault = engine.FaultRules },
			want: []Rule{RuleGapGroup, RuleGapHost, RuleOpenGroup, RuleOpenHost, RuleBarred, RuleStart,
				RuleFair, RuleBackoff, RuleNotBefore, RuleCrawlDelay}},
		{name: "a group asked before hosts have joined it", kind: "rules",
			set: func() { hostslots.Fault = hostslots.FaultJoin }, want: []Rule{RuleOpenGroup, RuleGapGroup}},
		{name: "silence noticed late", kind: "storm",
			set: func() { hostslots.Fault = hostslots.FaultSilence }, want: []Rule{RuleTimeout, RuleSleep}},
		{name: "no reject list", kind: "collide", set: func() { hostslots.Fault = hostslots.FaultReject },
			want: []Rule{RuleReject}},
		{name: "sent while paused", kind: "operator", set: func() { engine.Fault = engine.FaultSend },
			want: []Rule{RuleMute}},
		{name: "sent while stopped", kind: "stop", set: func() { engine.Fault = engine.FaultSend },
			want: []Rule{RuleMute}},
		{name: "robots.txt ignored", kind: "healthy", set: func() { engine.Fault = engine.FaultRobots },
			want: []Rule{RuleRobots}},
		{name: "robots.txt not fetched", kind: "healthy",
			set: func() { engine.Fault = engine.FaultUnasked }, want: []Rule{RuleRobots}},
		{name: "robots.txt kept for ever", kind: "day", set: func() { engine.Fault = engine.FaultOld },
			want: []Rule{RuleRobots}},
		{name: "outcomes told twice", kind: "healthy", set: func() { engine.Fault = engine.FaultAgain },
			want: []Rule{RuleOutcome}},
		{name: "outcomes not told", kind: "healthy", set: func() { engine.Fault = engine.FaultUnreported },
			want: []Rule{RuleOutcome, RuleHeld}},
		{name: "the wrong outcome", kind: "healthy", set: func() { engine.Fault = engine.FaultKind },
			want: []Rule{RuleOutcome}},
		{name: "quarantine ignored", kind: "day", set: func() { engine.Fault = engine.FaultQuarantine },
			want: []Rule{RuleLine, RuleOutcome}},
		{name: "too many documents at a spider", kind: "day",
			set: func() { engine.Fault = engine.FaultRoom }, want: []Rule{RuleInFlight, RuleCompany}},
		{name: "statuses of others taken", kind: "storm", set: func() { engine.Fault = engine.FaultAlien },
			want: []Rule{RuleOutcome}},
		{name: "late lines not counted", kind: "stall", set: func() { engine.Fault = engine.FaultWire },
			want: []Rule{RuleGapGroup, RuleCrawlDelay, RuleFair, RuleBackoff}},
		{name: "a host that moves with documents held", kind: "zones",
			set: func() { engine.Fault = engine.FaultAddress }, want: []Rule{RuleAddress}},
		{name: "two requests to the index at once", kind: "healthy",
			set: func() { engine.Fault = engine.FaultAsk }, want: []Rule{RuleAsk}},
		{name: "sleeps too long", kind: "healthy", set: func() { engine.Fault = engine.FaultSleep },
			want: []Rule{RuleSleep}},
		{name: "any spider gets documents", kind: "spiders",
			set: func() { engine.Fault = engine.FaultChoice }, want: []Rule{RuleChoice}},
		{name: "robots.txt that hang keep their places", kind: "robots",
			set: func() { engine.Fault = engine.FaultPlaces }, want: []Rule{RuleServed}},
		{name: "names given up at once", kind: "zones", set: func() { engine.Fault = engine.FaultGiveUp },
			want: []Rule{RulePatience}},
		{name: "what is lost with others taken for the cause", kind: "spiders",
			set: func() { engine.Fault = engine.FaultBlame }, want: []Rule{RulePatience, RuleCompany}},
		{name: "a spider not hung up on", kind: "spiders",
			set: func() { engine.Fault = engine.FaultHangUp }, want: []Rule{RuleHangUp}},
		{name: "robots.txt asked for once", kind: "robots", set: func() { engine.Fault = engine.FaultOnce },
			want: []Rule{RulePatience}},
		{name: "names that fail count against intake", kind: "zones",
			set: func() { engine.Fault = engine.FaultIntake }, want: []Rule{RuleServed}},
		{name: "addresses out of date", kind: "zones", set: func() { engine.Fault = engine.FaultStay },
			want: []Rule{RuleAddress}},
		{name: "rules of robots.txt not dropped", kind: "robots",
			set: func() { engine.Fault = engine.FaultMemory }, want: []Rule{RuleMemory}},
		{name: "costly verdicts made by the engine", kind: "robots",
			set: func() { engine.Fault = engine.FaultVerdict }, want: []Rule{RuleCostly}},
		{name: "costly verdicts not charged", kind: "accidents",
			set: func() { engine.Fault = engine.FaultCharge }, want: []Rule{RuleCostly}},
		{name: "never sleeps", kind: "healthy", set: func() { engine.Fault = engine.FaultSpin },
			want: []Rule{RuleIdle}},
	}
}

// lateBites are those that an oracle can see that is late to hear of things.
func lateBites() []bite {
	return []bite{
		{name: "halved gap", set: func() { hostslots.Fault = hostslots.FaultGap },
			want: []Rule{RuleGapHost, RuleGapGroup}},
		{name: "sent right after the start", set: func() { hostslots.Fault = hostslots.FaultStart },
			want: []Rule{RuleGapHost}},
		{name: "times left behind by a host that moves",
			set: func() { hostslots.Fault = hostslots.FaultCarry }, want: []Rule{RuleGapHost, RuleGapGroup}},
		{name: "last in, first out", set: func() { hostslots.Fault = hostslots.FaultOrder }, want: []Rule{RuleOrder}},
		{name: "a TRANS_ID used again", set: func() { hostslots.Fault = hostslots.FaultGeneration },
			want: []Rule{RuleTransaction}},
		{name: "rules for hosts ignored", set: func() { hostslots.Fault = hostslots.FaultLimits },
			want: []Rule{RuleGapHost, RuleGapGroup, RuleBarred}},
		{name: "groups of rules ignored", set: func() { engine.Fault = engine.FaultGroup },
			want: []Rule{RuleGapGroup, RuleOpenGroup}},
		{name: "changed rules ignored", set: func() { engine.Fault = engine.FaultRules },
			want: []Rule{RuleGapHost, RuleGapGroup, RuleOpenGroup, RuleBarred, RuleProgress}},
		{name: "a group asked before hosts have joined it",
			set: func() { hostslots.Fault = hostslots.FaultJoin }, want: []Rule{RuleOpenGroup, RuleGapGroup}},
		{name: "too many documents at a spider", set: func() { engine.Fault = engine.FaultRoom },
			want: []Rule{RuleInFlight}},
		{name: "outcomes told twice", set: func() { engine.Fault = engine.FaultAgain }, want: []Rule{RuleOutcome}},
		{name: "outcomes not told", set: func() { engine.Fault = engine.FaultUnreported }, want: []Rule{RuleProgress}},
		{name: "the wrong outcome", set: func() { engine.Fault = engine.FaultKind }, want: []Rule{RuleOutcome}},
	}
}

// TestOracleBites breaks each rule, one at a time, and wants the oracle's complaint.
func TestOracleBites(t *testing.T) {
	for _, b := range bites() {
		b.check(t, func(seed uint64) error {
			_, err := Run(small(t, b.kind, seed))
			return err
		})
	}
}

func TestLateOracleBitesFaults(t *testing.T) {
	for _, b := range lateBites() {
		b.check(t, func(seed uint64) error { return newLateRun(seed, same).work() })
	}
}

func (b bite) check(t *testing.T, run func(seed uint64) error) {
	t.Run(b.name, func(t *testing.T) {
		defer func() { hostslots.Fault, engine.Fault = hostslots.FaultNone, engine.FaultNone }()
		b.set()
		complaint(t, b.want, run)
	})
}
