package sim

import (
	"fmt"
	"time"

	"urlserver/configs"
)

// Rule names a rule that the oracle checks.
type Rule string

// The rules that the oracle checks.
const (
	RuleOpenSite      Rule = "open requests to a site"
	RuleOpenAddress   Rule = "open requests to an address"
	RuleOpenNetwork   Rule = "open requests to a shared network"
	RuleGapSite       Rule = "gap of a site"
	RuleGapAddress    Rule = "gap of an address"
	RuleGapNetwork    Rule = "gap of a shared network"
	RuleStart         Rule = "gap after the start"
	RuleCrawlDelay    Rule = "Crawl-delay"
	RuleBackoff       Rule = "backoff of a site"
	RuleAddressFails  Rule = "backoff of an address"
	RuleNotBefore     Rule = "Retry-After, or an earlier delay"
	RuleFair          Rule = "delay_factor"
	RuleDisabled      Rule = "nothing is sent while paused, stopped or under back-pressure"
	RuleBlocked       Rule = "nothing is sent to a blocked host"
	RuleBlockedByRule Rule = "nothing is sent to a host that a rule blocks"
	RuleRobots        Rule = "robots.txt"
	RuleOrder         Rule = "first in, first out within priority"
	RuleAttempts      Rule = "attempts"
	RuleTwice         Rule = "a document is at one spider at a time"
	RuleInFlight      Rule = "documents in flight at a spider"
	RuleRoom          Rule = "a spider gets no more than it said"
	RuleBack          Rule = "a document that was given back comes no sooner than the spider said"
	RuleAsked         Rule = "counts that a spider asked for are true"
	RuleTransaction   Rule = "a TRANS_ID names one transaction"
	RuleAddress       Rule = "address of a host"
	RuleLine          Rule = "line to a spider"
	RuleOutcome       Rule = "one outcome a document, and the right one"
	RuleHeld          Rule = "nothing is lost"
	RuleProgress      Rule = "every document ends"
	RuleReject        Rule = "reject list"
	RuleAsk           Rule = "one request to the index at a time"
	RuleScanner       Rule = "lines from a spider"
	RuleTimeout       Rule = "status timeouts are noticed in time"
	RuleSleep         Rule = "due work is done at once"
	RuleSuspects      Rule = "a suspect is sent again with fewer others"
	RuleHangUp        Rule = "the connection of a spider that keeps a document too long is closed"
	RuleChoice        Rule = "slow spiders get fewer documents, and spiders that have not answered get few"
	RuleServed        Rule = "a host without trouble is served soon, whatever others do"
	RulePatience      Rule = "no document ends that a patient crawler would have fetched"
	RuleIdle          Rule = "no work without cause"
	RuleNotes         Rule = "a robots.txt is not asked for while a note of it is in force"
	RuleMemory        Rule = "the rules of all robots.txt stay within robots.memory"
	RuleScope         Rule = "nothing is taken or sent that a scope refuses"
	RuleBudget        Rule = "a domain over its budget waits while others have something due"
	RuleAhead         Rule = "the slots have no more documents of a domain than they take ahead"
	RuleShapes        Rule = "no shape of a site's links goes three times while another one waits"
	RuleScopeLost     Rule = "what a scope has is not lost"
	RuleCostly        Rule = "costly verdicts are made outside the engine, and few at a time for an origin"
)

// Complaint is the first violation that the oracle found.
type Complaint struct {
	Rule Rule
	At   time.Duration // virtual time
	Text string
}

// Error returns the time, the rule and the case.
func (c *Complaint) Error() string {
	return fmt.Sprintf("at %v: broken rule %q: %s", c.At, c.Rule, c.Text)
}

// Failure is a complaint and the scenario that repeats it.
type Failure struct {
	Scenario Scenario
	Complaint
}

// Error returns the scenario's kind and seed, and the complaint.
func (f *Failure) Error() string {
	return fmt.Sprintf("scenario %q (%d documents), seed %d: %v", f.Scenario.Kind, f.Scenario.Documents,
		f.Scenario.Seed, &f.Complaint)
}

// Unwrap returns the complaint.
func (f *Failure) Unwrap() error { return &f.Complaint }

// limits holds the settings that the oracle needs.
type limits struct {
	gap           float64 // of an address, ns
	concurrent    int     // of an address
	siteGap       float64 // ns
	siteOpen      int
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
	forgets       bool // robots.memory may be too small for all robots.txt
	rules         []configs.HostRule
}

const fewRobots = 64 << 20 // below so many bytes, robots.memory may be too small for all robots.txt

func limitsOf(c configs.Config, exact bool) limits {
	l := limits{
		gap: 1e9 / c.ReqHostPerSec, concurrent: c.ReqHostConcurrent, siteGap: 1e9 / c.ReqHostPerSec,
		siteOpen: c.ReqHostConcurrent, inFlight: c.Spider.MaxInFlight,
		attempts: c.Spider.MaxAttempts, rejectOver: c.VHosts.RejectOver, statusTimeout: c.TimeoutSpiderStatus,
		quarantine: c.DocIndex.Quarantine, askRetry: c.DocIndex.MaxRetry, giveUp: c.Resolver.GiveUp,
		maxFetch: c.Spider.MaxFetch, delayFactor: c.Politeness.DelayFactor, maxDelay: c.Politeness.MaxDelay,
		robots: c.Robots.Enabled, robotsTTL: c.Robots.TTL, errorTTL: c.Robots.ErrorTTL,
		maxCrawlDelay: c.Robots.MaxCrawlDelay, robotsMemory: c.Robots.Memory, forgets: c.Robots.Memory < fewRobots,
		rules: c.Rules,
	}
	if p := c.Politeness.SitePerSec; p > 0 {
		l.siteGap = 1e9 / p
	}
	if n := c.Politeness.SiteConcurrent; n > 0 {
		l.siteOpen = n
	}
	if exact {
		l.quarantine = 0
	}
	return l
}
