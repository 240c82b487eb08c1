package scoped

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// Settings are the settings of a crawl as the store keeps them.
type Settings struct {
	Scope  scope.Scope `json:"scope"`
	Weight float64     `json:"weight"` // of its turns among crawls

	Changed bool `json:"changed,omitempty"` // documents may be stored that are not in scope
	Review  bool `json:"review,omitempty"`  // Run has to review the stored documents
	Stopped bool `json:"stopped,omitempty"` // for good

	Submitted bool `json:"submitted,omitempty"` // by crawl control, which lists its crawls itself
}

// MinWeight and MaxWeight bound weights.
const (
	MinWeight = 0.001
	MaxWeight = 1000
)

// ErrWeight says why a weight is refused.
var ErrWeight = fmt.Errorf("weight: it has to be from %v to %d", MinWeight, MaxWeight)

// normal returns the settings in their one form.
func (s Settings) normal() (Settings, error) {
	if s.Weight == 0 {
		s.Weight = 1
	}
	if !(s.Weight >= MinWeight && s.Weight <= MaxWeight) {
		return s, fmt.Errorf("%w: %v", ErrWeight, s.Weight)
	}
	var err error
	if s.Scope, err = s.Scope.Normal(); err != nil {
		return s, fmt.Errorf("scope.%w", err)
	}
	return s, nil
}

// crawl is a crawl with settings. All but tally does not change.
type crawl struct {
	Settings
	text  string       // the settings as they are kept
	rules *scope.Rules // nil: everything is in scope
	tally *tally
}

// tally counts documents of a crawl.
type tally struct {
	refused  [scope.RuleCount]atomic.Uint64 // by rule: documents that were not taken, or ended
	dropped  atomic.Uint64                  // documents that were not taken, as the crawl ID was stopped
	stale    atomic.Bool                    // the documents are to be counted anew before places are taken
	counting chan struct{}                  // a semaphore of one: its holder counts the documents
}

// newCrawlLocked returns a crawl from its kept settings. Settings that cannot be read, because a
// later program has written them, refuse everything, so that nothing is fetched that they may
// forbid.
func (s *Store) newCrawlLocked(text string) *crawl {
	c := &crawl{text: text, tally: &tally{counting: make(chan struct{}, 1)}}
	if err := json.Unmarshal([]byte(text), &c.Settings); err != nil {
		c.Changed, c.rules = true, unreadable
		return c
	}
	if c.Scope.Empty() {
		return c
	}
	key := string(c.Scope.Text())
	if c.rules = s.rules[key]; c.rules != nil {
		return c
	}
	rules, err := scope.Compile(c.Scope)
	if err != nil {
		rules, c.Changed = unreadable, true
	}
	if len(s.rules) >= maxRules {
		clear(s.rules)
	}
	c.rules, s.rules[key] = rules, rules
	return c
}

// unreadable has nothing in scope.
var unreadable = func() *scope.Rules {
	rules, _ := scope.Compile(scope.Scope{Allow: []string{`$^`}}) // it is good
	return rules
}()

// check returns the rule that refuses a document.
func (c *crawl) check(url, host []byte, depth uint16, now int64) scope.Rule {
	if c == nil || c.rules == nil {
		return scope.InScope
	}
	rule := c.rules.Check(url, host, int(depth), now)
	switch {
	case faulty(fault(rule)):
		return scope.InScope
	case faulty(FaultRefuse) && len(url)%8 == 0:
		return scope.Deny
	}
	return rule
}

// limited reports whether the number of the crawl's documents is limited.
func (c *crawl) limited() bool {
	return c != nil && c.rules != nil && c.Scope.MaxPages+c.Scope.MaxPagesDomain > 0
}

// countsMore reports whether the settings limit a count that the old settings did not limit.
func (c *crawl) countsMore(old *crawl) bool {
	return c.limited() && (!old.limited() || c.Scope.MaxPagesDomain > 0 && old.Scope.MaxPagesDomain == 0)
}

// rechecked reports whether the store checks the crawl's documents before it hands them out.
func (c *crawl) rechecked(now int64) bool {
	return c != nil && !faulty(FaultSend) && (c.Changed || c.Stopped || c.rules != nil && c.rules.Over(now))
}

// ends returns the outcome of a stored document that is not to be fetched; ok is false for one that
// is.
func (c *crawl) ends(url, host []byte, depth uint16, now int64) (kind docindex.Kind, rule scope.Rule, ok bool) {
	if c.Stopped {
		return docindex.Stopped, 0, true
	}
	rule = c.check(url, host, depth, now)
	return docindex.OutOfScope, rule, rule != scope.InScope
}
