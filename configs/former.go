package configs

import (
	"net/netip"
	"slices"
	"time"
)

// FormerRules remembers rules that were in force lately, to tell which addresses have left a shared
// network. Times are since the daemon's start. The zero value remembers none.
type FormerRules struct{ list []formerRules }

type formerRules struct {
	config Config
	set    *RuleSet
	until  time.Duration
}

// Add remembers the rules of a configuration, which others have replaced, until a moment.
func (f *FormerRules) Add(c Config, set *RuleSet, now, until time.Duration) {
	f.list = slices.DeleteFunc(f.list, func(one formerRules) bool {
		return one.until <= now || one.config.SameRules(c)
	})
	if len(set.shared) > 0 {
		f.list = append(f.list, formerRules{c, set, until})
	}
}

// SharedUntil returns until when a host at an address counts as one that has just left a shared
// network; 0: it does not. The rules in force have the address on none.
func (f *FormerRules) SharedUntil(host []byte, addr netip.Addr, now time.Duration) (until time.Duration) {
	for i := range f.list {
		if one := &f.list[i]; one.until > max(now, until) && one.set.Limits(host, addr).Shared != nil {
			until = one.until
		}
	}
	return until
}
