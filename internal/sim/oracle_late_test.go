package sim

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"urlserver/configs"
)

const lateSeeds = 150

func same(c configs.Config) configs.Config { return c }

// The oracle never complains of a daemon that keeps the rules, however late events reach it.
func TestLateOracleIsFair(t *testing.T) {
	for seed := range uint64(lateSeeds) {
		if err := newLateRun(1+seed, same).work(); err != nil {
			t.Errorf("seed %d, %v", 1+seed, err)
		}
	}
}

// If the daemon's settings are more lenient than the oracle's, the oracle complains.
func TestLateOracleFindsOtherSettings(t *testing.T) {
	first := func(c *configs.Config, r configs.HostRule) { c.Rules = append([]configs.HostRule{r}, c.Rules...) }
	for _, b := range []struct {
		name   string
		change func(c *configs.Config)
		want   []Rule
	}{
		{name: "a tenth more per second", change: func(c *configs.Config) { c.ReqHostPerSec /= 1.1 },
			want: []Rule{RuleGapSite}},
		{name: "a request more at a host", change: func(c *configs.Config) {
			c.ReqHostConcurrent = max(1, c.ReqHostConcurrent-1)
		}, want: []Rule{RuleOpenSite}},
		{name: "a document more at a spider", change: func(c *configs.Config) { c.Spider.MaxInFlight-- },
			want: []Rule{RuleInFlight}},
		{name: "the last rule ignored", change: func(c *configs.Config) {
			c.Rules = append(slices.Clone(c.Rules), configs.HostRule{Hosts: []string{"*"}, PerSec: 0.1})
		}, want: []Rule{RuleGapSite}},
		{name: "a group ignored", change: func(c *configs.Config) {
			first(c, configs.HostRule{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/30")},
				PerSec: 100, Group: "few"})
		}, want: []Rule{RuleGapSite, RuleOpenSite}},
		{name: "a block ignored", change: func(c *configs.Config) {
			first(c, configs.HostRule{Hosts: []string{"192.0.2.1"}, PerSec: 100, Block: true})
		}, want: []Rule{RuleBlockedByRule}},
	} {
		t.Run(b.name, func(t *testing.T) {
			watched := func(c configs.Config) configs.Config { b.change(&c); return c }
			complaint(t, b.want, func(seed uint64) error { return newLateRun(seed, watched).work() })
		})
	}
}

const mutationSeeds = 20 // at least one of them must lead to a complaint

// complaint calls run with several seeds until it returns a complaint, which must be of one of the
// rules in want.
func complaint(t *testing.T, want []Rule, run func(seed uint64) error) {
	t.Helper()
	for seed := range uint64(mutationSeeds) {
		err := run(1 + seed)
		var c *Complaint
		if !errors.As(err, &c) {
			continue
		}
		if !slices.Contains(want, c.Rule) {
			t.Fatalf("seed %d: %v; want a complaint of %q", 1+seed, err, want)
		}
		t.Logf("seed %d: %v", 1+seed, c)
		return
	}
	t.Errorf("no complaint with %d seeds; want one of %q", mutationSeeds, want)
}
