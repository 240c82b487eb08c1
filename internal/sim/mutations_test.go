//go:build faults

package sim

import (
	"slices"
	"testing"

	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/hostslots"
	"urlserver/urlserver/engine"
)

// mutation breaks a rule on purpose. want lists the rules that the oracle may name in its
// complaint.
type mutation struct {
	name string
	kind string // of scenario
	set  func()
	want []Rule
}

// fault returns a function that sets a package's Fault.
func fault[F any](at *F, value F) func() { return func() { *at = value } }

// slotsMutations returns mutations of one pace.
func slotsMutations() []mutation {
	return []mutation{
		{name: "halved gap", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultGap),
			want: []Rule{RuleGapSite, RuleGapAddress, RuleStart, RuleCrawlDelay}},
		{name: "requests beyond the limit", kind: "healthy",
			set: fault(&hostslots.Fault, hostslots.FaultConcurrent), want: []Rule{RuleOpenAddress, RuleOpenSite}},
		{name: "times forgotten when the slot is lost", kind: "scarce",
			set: fault(&hostslots.Fault, hostslots.FaultForget), want: []Rule{RuleGapSite, RuleGapAddress,
				RuleCrawlDelay,
				RuleBackoff, RuleNotBefore, RuleFair}},
		{name: "times lost when a host moves", kind: "collide", set: fault(&hostslots.Fault, hostslots.FaultCarry),
			want: []Rule{RuleGapSite, RuleCrawlDelay, RuleNotBefore, RuleBackoff, RuleFair}},
		{name: "documents lost with a spider", kind: "storm", set: fault(&hostslots.Fault, hostslots.FaultLose),
			want: []Rule{RuleOutcome}},
		{name: "late statuses taken for live ones", kind: "storm",
			set: fault(&hostslots.Fault, hostslots.FaultStale), want: []Rule{RuleOutcome}},
		{name: "retries ignore the pace", kind: "storm", set: fault(&hostslots.Fault, hostslots.FaultRetry),
			want: []Rule{RuleGapSite, RuleGapAddress, RuleCrawlDelay, RuleFair, RuleBackoff}},
		{name: "Crawl-delay ignored", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultDelay),
			want: []Rule{RuleCrawlDelay}},
		{name: "backoff ignored", kind: "day", set: fault(&hostslots.Fault, hostslots.FaultBackoff),
			want: []Rule{RuleBackoff}},
		{name: "Retry-After ignored", kind: "day", set: fault(&hostslots.Fault, hostslots.FaultRetryAfter),
			want: []Rule{RuleNotBefore, RuleBackoff}},
		{name: "delay_factor ignored", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultFair),
			want: []Rule{RuleFair}},
		{name: "sent right after the start", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultStart),
			want: []Rule{RuleStart}},
		{name: "last in, first out", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultOrder),
			want: []Rule{RuleOrder}},
		{name: "priority ignored", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultPriority),
			want: []Rule{RuleOrder}},
		{name: "endless attempts", kind: "storm", set: fault(&hostslots.Fault, hostslots.FaultAttempts),
			want: []Rule{RuleAttempts}},
		{name: "a held document taken again", kind: "day", set: fault(&hostslots.Fault, hostslots.FaultHeld),
			want: []Rule{RuleTwice, RuleLine, RuleOutcome, RuleHeld}},
		{name: "a TRANS_ID used again", kind: "healthy", set: fault(&hostslots.Fault, hostslots.FaultGeneration),
			want: []Rule{RuleTransaction}},
		{name: "blocked hosts asked", kind: "operator", set: fault(&hostslots.Fault, hostslots.FaultBlock),
			want: []Rule{RuleBlocked}},
	}
}

// levelMutations returns mutations of the pace of sites, addresses and shared networks, by rules and
// over restarts.
func levelMutations() []mutation {
	return []mutation{
		{name: "rules for hosts ignored", kind: "rules", set: fault(&hostslots.Fault, hostslots.FaultLimits),
			want: []Rule{RuleGapAddress, RuleGapSite, RuleOpenAddress, RuleOpenSite, RuleBlockedByRule, RuleStart}},
		{name: "a group asked before hosts have joined it", kind: "rules",
			set: fault(&hostslots.Fault, hostslots.FaultJoin), want: []Rule{RuleOpenSite, RuleGapSite}},
		{name: "open requests to hosts that are to be on a network or at an address do not count there",
			kind: "rules", set: fault(&hostslots.Fault, hostslots.FaultBelow),
			want: []Rule{RuleOpenNetwork, RuleOpenAddress}},
		{name: "halved gap of sites", kind: "sites", set: fault(&hostslots.Fault, hostslots.FaultSiteGap),
			want: []Rule{RuleGapSite, RuleStart}},
		{name: "open requests to a site beyond the limit", kind: "sites",
			set: fault(&hostslots.Fault, hostslots.FaultSiteOpen), want: []Rule{RuleOpenSite}},
		{name: "Retry-After binds neighbours", kind: "neighbours",
			set: fault(&hostslots.Fault, hostslots.FaultNeighbours), want: []Rule{RuleServed}},
		{name: "addresses do not back off", kind: "sites",
			set: fault(&hostslots.Fault, hostslots.FaultAddressBackoff), want: []Rule{RuleAddressFails}},
		{name: "the backoff of addresses forgotten at a restart", kind: "restarts",
			set: fault(&hostslots.Fault, hostslots.FaultRestore), want: []Rule{RuleAddressFails}},
		{name: "pauses of sites forgotten at a restart", kind: "restarts",
			set: fault(&atRestart, func(r *run) { clear(r.kept.paused) }), want: []Rule{RuleNotBefore}},
		{name: "pauses of sites forgotten by the engine at a restart", kind: "restarts",
			set: fault(&hostslots.Fault, hostslots.FaultPauses), want: []Rule{RuleNotBefore}},
		{name: "sent right after a restart", kind: "restarts",
			set:  fault(&atRestart, func(*run) { hostslots.Fault = hostslots.FaultStart }),
			want: []Rule{RuleStart, RuleAddressFails}},
		{name: "limits of shared networks ignored", kind: "networks",
			set: fault(&hostslots.Fault, hostslots.FaultCap), want: []Rule{RuleGapNetwork, RuleOpenNetwork}},
		{name: "silence noticed late", kind: "storm", set: fault(&hostslots.Fault, hostslots.FaultSilence),
			want: []Rule{RuleTimeout, RuleSleep}},
		{name: "no reject list", kind: "collide", set: fault(&hostslots.Fault, hostslots.FaultReject),
			want: []Rule{RuleReject}},
	}
}

// engineMutations returns mutations of when and what the engine sends and reports.
func engineMutations() []mutation {
	return []mutation{
		{name: "groups of rules ignored", kind: "rules",
			set: fault(&engine.Fault, engine.FaultGroup), want: []Rule{RuleGapSite, RuleOpenSite, RuleStart,
				RuleFair, RuleBackoff, RuleNotBefore, RuleCrawlDelay}},
		{name: "changed rules ignored", kind: "rules",
			set: fault(&engine.Fault, engine.FaultRules), want: []Rule{RuleGapAddress, RuleGapSite, RuleOpenAddress,
				RuleOpenSite, RuleBlockedByRule, RuleStart, RuleFair, RuleBackoff, RuleNotBefore, RuleCrawlDelay}},
		{name: "sent while paused", kind: "operator", set: fault(&engine.Fault, engine.FaultSend),
			want: []Rule{RuleDisabled}},
		{name: "sent while stopped", kind: "stop", set: fault(&engine.Fault, engine.FaultSend),
			want: []Rule{RuleDisabled}},
		{name: "outcomes reported twice", kind: "healthy", set: fault(&engine.Fault, engine.FaultAgain),
			want: []Rule{RuleOutcome}},
		{name: "outcomes not reported", kind: "healthy", set: fault(&engine.Fault, engine.FaultUnreported),
			want: []Rule{RuleOutcome, RuleHeld}},
		{name: "the wrong outcome", kind: "healthy", set: fault(&engine.Fault, engine.FaultKind),
			want: []Rule{RuleOutcome}},
		{name: "quarantine ignored", kind: "day", set: fault(&engine.Fault, engine.FaultQuarantine),
			want: []Rule{RuleLine, RuleOutcome}},
		{name: "two requests to the index at once", kind: "healthy", set: fault(&engine.Fault, engine.FaultAsk),
			want: []Rule{RuleAsk}},
		{name: "sleeps too long", kind: "healthy", set: fault(&engine.Fault, engine.FaultSleep),
			want: []Rule{RuleSleep}},
		{name: "never sleeps", kind: "healthy", set: fault(&engine.Fault, engine.FaultSpin),
			want: []Rule{RuleIdle}},
	}
}

// spiderMutations returns mutations of what the engine does with spiders and their lines.
func spiderMutations() []mutation {
	return []mutation{
		{name: "too many documents at a spider", kind: "day", set: fault(&engine.Fault, engine.FaultRoom),
			want: []Rule{RuleInFlight, RuleSuspects, RuleRoom}},
		{name: "more documents at a spider than it said", kind: "verbs", set: fault(&engine.Fault, engine.FaultSaid),
			want: []Rule{RuleRoom}},
		{name: "documents given back come too soon", kind: "verbs", set: fault(&engine.Fault, engine.FaultEarly),
			want: []Rule{RuleBack}},
		{name: "documents given back do not count for the pace", kind: "day",
			set: fault(&hostslots.Fault, hostslots.FaultBackPace), want: []Rule{RuleGapSite, RuleGapAddress}},
		{name: "documents given back count as attempts", kind: "verbs",
			set: fault(&hostslots.Fault, hostslots.FaultBackAttempt), want: []Rule{RuleOutcome}},
		{name: "documents given back end", kind: "verbs", set: fault(&engine.Fault, engine.FaultBack),
			want: []Rule{RuleOutcome}},
		{name: "statuses of others taken", kind: "storm", set: fault(&engine.Fault, engine.FaultAlien),
			want: []Rule{RuleOutcome}},
		{name: "late lines not counted", kind: "stall", set: fault(&engine.Fault, engine.FaultWire),
			want: []Rule{RuleGapSite, RuleGapAddress, RuleCrawlDelay, RuleFair, RuleBackoff}},
		{name: "any spider gets documents", kind: "spiders", set: fault(&engine.Fault, engine.FaultChoice),
			want: []Rule{RuleChoice}},
		{name: "suspects blamed though others were lost with them", kind: "spiders",
			set: fault(&engine.Fault, engine.FaultBlame), want: []Rule{RulePatience, RuleSuspects}},
		{name: "a connection not closed", kind: "spiders", set: fault(&engine.Fault, engine.FaultHangUp),
			want: []Rule{RuleHangUp}},
	}
}

// robotsMutations returns mutations of robots.txt, names and addresses.
func robotsMutations() []mutation {
	return []mutation{
		{name: "robots.txt ignored", kind: "healthy", set: fault(&engine.Fault, engine.FaultRobots),
			want: []Rule{RuleRobots}},
		{name: "robots.txt not fetched", kind: "healthy", set: fault(&engine.Fault, engine.FaultUnasked),
			want: []Rule{RuleRobots}},
		{name: "robots.txt kept for ever", kind: "day", set: fault(&engine.Fault, engine.FaultOld),
			want: []Rule{RuleRobots}},
		{name: "a host that moves with documents held", kind: "collide",
			set: fault(&engine.Fault, engine.FaultAddress), want: []Rule{RuleAddress}},
		{name: "hanging robots.txt keep their places", kind: "robots",
			set: fault(&engine.Fault, engine.FaultPlaces), want: []Rule{RuleServed}},
		{name: "names given up at once", kind: "zones", set: fault(&engine.Fault, engine.FaultGiveUp),
			want: []Rule{RulePatience}},
		{name: "robots.txt asked for once", kind: "robots", set: fault(&engine.Fault, engine.FaultOnce),
			want: []Rule{RulePatience}},
		{name: "notes of robots.txt not looked for", kind: "notes",
			set: fault(&engine.Fault, engine.FaultNotes), want: []Rule{RuleNotes}},
		{name: "notes of robots.txt count as new", kind: "notes",
			set: fault(&engine.Fault, engine.FaultNoteAge), want: []Rule{RuleRobots}},
		{name: "failing names count against intake", kind: "zones", set: fault(&engine.Fault, engine.FaultIntake),
			want: []Rule{RuleServed}},
		{name: "outdated addresses", kind: "zones", set: fault(&engine.Fault, engine.FaultStay),
			want: []Rule{RuleAddress}},
		{name: "rules of robots.txt not dropped", kind: "robots", set: fault(&engine.Fault, engine.FaultMemory),
			want: []Rule{RuleMemory}},
		{name: "costly verdicts made by the engine", kind: "robots", set: fault(&engine.Fault, engine.FaultVerdict),
			want: []Rule{RuleCostly}},
		{name: "costly verdicts not charged", kind: "accidents", set: fault(&engine.Fault, engine.FaultCharge),
			want: []Rule{RuleCostly}},
	}
}

// scopeMutations returns the mutations of the layer that keeps crawls in their scopes.
func scopeMutations() (all []mutation) {
	put := []Rule{RuleScope}
	all = append(all, mutation{name: "shapes take no turns", kind: "shapes",
		set: fault(memory.ShapesFault, memory.FaultTurns), want: []Rule{RuleShapes}})
	for _, m := range []mutation{
		{name: "end time ignored", set: fault(&scoped.Fault, scoped.FaultUntil), want: put},
		{name: "depth ignored", set: fault(&scoped.Fault, scoped.FaultDepth), want: put},
		{name: "domains ignored", set: fault(&scoped.Fault, scoped.FaultDomain), want: put},
		{name: "extensions ignored", set: fault(&scoped.Fault, scoped.FaultExtension), want: put},
		{name: "denied patterns ignored", set: fault(&scoped.Fault, scoped.FaultDeny), want: put},
		{name: "allowed patterns ignored", set: fault(&scoped.Fault, scoped.FaultAllow), want: put},
		{name: "max_pages ignored", set: fault(&scoped.Fault, scoped.FaultPages), want: put},
		{name: "max_pages_domain ignored", set: fault(&scoped.Fault, scoped.FaultPerDomain), want: put},
		{name: "documents refused that are in scope", set: fault(&scoped.Fault, scoped.FaultRefuse),
			want: []Rule{RuleScope, RuleScopeLost}},
		{name: "a stopped crawl takes links", set: fault(&scoped.Fault, scoped.FaultStopped), want: put},
		{name: "links as deep as their pages", set: fault(&scoped.Fault, scoped.FaultVia), want: put},
		{name: "a changed scope without effect on what is stored", set: fault(&scoped.Fault, scoped.FaultSend),
			want: put},
		{name: "documents in the slots not recalled", set: fault(&scoped.Fault, scoped.FaultRecall), want: put},
		{name: "a wider scope schedules nothing", set: fault(&scoped.Fault, scoped.FaultAgain),
			want: []Rule{RuleScopeLost}},
		{name: "ends that come late count", set: fault(&scoped.Fault, scoped.FaultLate), want: []Rule{RuleScopeLost}},
		{name: "no domain waits", set: fault(memory.Fault, memory.FaultBudget), want: []Rule{RuleBudget}},
		{name: "rounds do not grow", set: fault(memory.Fault, memory.FaultStretch), want: []Rule{RuleBudget}},
		{name: "slots take domains ahead", set: fault(memory.Fault, memory.FaultAhead),
			want: []Rule{RuleAhead}},
		{name: "waits are too short", set: fault(memory.Fault, memory.FaultEarly), want: []Rule{RuleBudget}},
		{name: "two ends of a document", set: fault(&scoped.Fault, scoped.FaultTwice), want: []Rule{RuleOutcome}},
	} {
		m.kind = "scopes"
		all = append(all, m)
	}
	return all
}

// lateMutations returns the mutations that an oracle sees although events reach it late.
func lateMutations() []mutation {
	return []mutation{
		{name: "halved gap", set: fault(&hostslots.Fault, hostslots.FaultGap),
			want: []Rule{RuleGapSite}},
		{name: "sent right after the start", set: fault(&hostslots.Fault, hostslots.FaultStart),
			want: []Rule{RuleGapSite}},
		{name: "times lost when a host moves", set: fault(&hostslots.Fault, hostslots.FaultCarry),
			want: []Rule{RuleGapSite}},
		{name: "last in, first out", set: fault(&hostslots.Fault, hostslots.FaultOrder), want: []Rule{RuleOrder}},
		{name: "a TRANS_ID used again", set: fault(&hostslots.Fault, hostslots.FaultGeneration),
			want: []Rule{RuleTransaction}},
		{name: "rules for hosts ignored", set: fault(&hostslots.Fault, hostslots.FaultLimits),
			want: []Rule{RuleGapSite, RuleBlockedByRule}},
		{name: "groups of rules ignored", set: fault(&engine.Fault, engine.FaultGroup),
			want: []Rule{RuleGapSite, RuleOpenSite}},
		{name: "changed rules ignored", set: fault(&engine.Fault, engine.FaultRules),
			want: []Rule{RuleGapSite, RuleOpenSite, RuleBlockedByRule, RuleProgress}},
		{name: "a group asked before hosts have joined it", set: fault(&hostslots.Fault, hostslots.FaultJoin),
			want: []Rule{RuleOpenSite, RuleGapSite}},
		{name: "too many documents at a spider", set: fault(&engine.Fault, engine.FaultRoom),
			want: []Rule{RuleInFlight}},
		{name: "outcomes reported twice", set: fault(&engine.Fault, engine.FaultAgain), want: []Rule{RuleOutcome}},
		{name: "outcomes not reported", set: fault(&engine.Fault, engine.FaultUnreported),
			want: []Rule{RuleProgress}},
		{name: "the wrong outcome", set: fault(&engine.Fault, engine.FaultKind), want: []Rule{RuleOutcome}},
	}
}

// TestMutations breaks one rule at a time. The oracle must complain.
func TestMutations(t *testing.T) {
	for _, b := range slices.Concat(slotsMutations(), levelMutations(), engineMutations(),
		spiderMutations(), robotsMutations(), scopeMutations()) {
		b.check(t, func(seed uint64) error {
			_, err := Run(small(t, b.kind, seed))
			return err
		})
	}
}

func TestLateMutations(t *testing.T) {
	for _, b := range lateMutations() {
		b.check(t, func(seed uint64) error { return newLateRun(seed, same).work() })
	}
}

func (b mutation) check(t *testing.T, run func(seed uint64) error) {
	t.Run(b.name, func(t *testing.T) {
		defer func() {
			hostslots.Fault, engine.Fault, scoped.Fault = hostslots.FaultNone, engine.FaultNone, scoped.FaultNone
			*memory.Fault, *memory.ShapesFault, atRestart = memory.FaultNone, memory.FaultNoShape, nil
		}()
		b.set()
		complaint(t, b.want, run)
	})
}
