package sim

import (
	"fmt"
	"time"

	"urlserver/configs"
)

// Rule names what a run has broken.
type Rule string

// What the oracle checks.
const (
	RuleOpenGroup   Rule = "open requests of a group"
	RuleOpenHost    Rule = "open requests of a host"
	RuleGapGroup    Rule = "gap of a group"
	RuleGapHost     Rule = "gap of a host"
	RuleStart       Rule = "gap after the start"
	RuleCrawlDelay  Rule = "Crawl-delay"
	RuleBackoff     Rule = "backing off"
	RuleNotBefore   Rule = "Retry-After, or an earlier delay"
	RuleFair        Rule = "delay_factor"
	RuleMute        Rule = "nothing is sent while paused, choked or stopped"
	RuleBlocked     Rule = "nothing is sent to a blocked host"
	RuleBarred      Rule = "nothing is sent to a host that a rule blocks"
	RuleRobots      Rule = "robots.txt"
	RuleOrder       Rule = "first in, first out within priority"
	RuleAttempts    Rule = "attempts"
	RuleTwice       Rule = "a document is at one spider at a time"
	RuleInFlight    Rule = "documents in flight at a spider"
	RuleTransaction Rule = "a TRANS_ID names one transaction"
	RuleAddress     Rule = "address of a host"
	RuleLine        Rule = "line to a spider"
	RuleOutcome     Rule = "one outcome a document, and the right one"
	RuleHeld        Rule = "nothing is lost"
	RuleProgress    Rule = "everything ends"
	RuleReject      Rule = "reject list"
	RuleAsk         Rule = "one request to the index at a time"
	RuleScanner     Rule = "lines from a spider"
	RuleTimeout     Rule = "silence is noticed in time"
	RuleSleep       Rule = "what is due is done at once"
	RuleCompany     Rule = "what may kill spiders is tried again in smaller company"
	RuleHangUp      Rule = "a spider that a document was with for too long is hung up on"
	RuleChoice      Rule = "slow spiders get less, and those that have not answered little"
	RuleServed      Rule = "a host without trouble is served soon, whatever others do"
	RulePatience    Rule = "nothing ends that a patient crawler would have fetched"
	RuleIdle        Rule = "no work without cause"
	RuleMemory      Rule = "the rules of all robots.txt keep within robots.memory"
	RuleCostly      Rule = "costly verdicts are made aside, and a host has a small part of them"
)

// Complaint is what the oracle found wrong first.
type Complaint struct {
	Rule Rule
	At   time.Duration // virtual time
	Text string
}

// Error gives the moment, the rule and the case.
func (c *Complaint) Error() string {
	return fmt.Sprintf("at %v: broken rule %q: %s", c.At, c.Rule, c.Text)
}

// Failure is a complaint with what repeats it.
type Failure struct {
	Scenario Scenario
	Complaint
}

// Error names the scenario and its seed.
func (f *Failure) Error() string {
	return fmt.Sprintf("scenario %q (%d documents), seed %d: %v", f.Scenario.Kind, f.Scenario.Documents,
		f.Scenario.Seed, &f.Complaint)
}

// Unwrap gives the complaint.
func (f *Failure) Unwrap() error { return &f.Complaint }

// limits are the settings as the oracle understands them.
type limits struct {
	gap           float64 // ns
	concurrent    int
	inFlight      int
	attempts      int
	rejectOver    int
	askRetry      time.Duration
	giveUp        time.Duration
	maxFetch      time.Duration
	statusTimeout time.Duration
	quarantine    time.Duration // 0: none, the index is exact
	delayFactor   float64
	maxDelay      time.Duration
	robots        bool
	robotsTTL     time.Duration
	errorTTL      time.Duration
	maxCrawlDelay time.Duration
	robotsMemory  int  // bytes
	forgets       bool // there is no room for what is read of all robots.txt
	rules         []configs.HostRule
}

const fewRobots = 64 << 20 // bytes that may be too few for what is read of all robots.txt

func limitsOf(c configs.Config, exact bool) limits {
	l := limits{
		gap: 1e9 / c.ReqHostPerSec, concurrent: c.ReqHostConcurrent, inFlight: c.Spider.MaxInFlight,
		attempts: c.Spider.MaxAttempts, rejectOver: c.VHosts.RejectOver, statusTimeout: c.TimeoutSpiderStatus,
		quarantine: c.DocIndex.Quarantine, askRetry: c.DocIndex.MaxRetry, giveUp: c.Resolver.GiveUp,
		maxFetch: c.Spider.MaxFetch, delayFactor: c.Politeness.DelayFactor, maxDelay: c.Politeness.MaxDelay,
		robots: c.Robots.Enabled, robotsTTL: c.Robots.TTL, errorTTL: c.Robots.ErrorTTL,
		maxCrawlDelay: c.Robots.MaxCrawlDelay, robotsMemory: c.Robots.Memory, forgets: c.Robots.Memory < fewRobots,
		rules: c.Rules,
	}
	if exact {
		l.quarantine = 0
	}
	return l
}
