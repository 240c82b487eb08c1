package configs

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

func nets(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func ruleSet(rules []HostRule) *RuleSet { return Config{Rules: rules}.RuleSet() }

// match returns the number of the first rule that applies to a host at an address, or NoRule.
func match(s *RuleSet, host string, addr netip.Addr) int {
	l := s.Limits([]byte(host), addr)
	return firstRule(l.SiteRule, l.AddressRule)
}

func TestRuleSetMatch(t *testing.T) {
	s := ruleSet([]HostRule{
		{Hosts: []string{"a.example.org"}, Block: true},
		{Hosts: []string{"*.example.org", "xn--bcher-kva.example"}, PerSec: 1},
		{Hosts: []string{"example.org", "a.example.org", "2001:db8::7"}, PerSec: 2},
		{Networks: nets("192.0.2.128/25", "2001:db8::/32"), PerSec: 3},
		{Hosts: []string{"*.b.example.org"}, Networks: nets("192.0.2.0/24", "198.51.100.7/32"), PerSec: 4},
		{Hosts: []string{"*.test"}, PerSec: 5},
		{Networks: nets("0.0.0.0/0"), PerSec: 6},
		{Hosts: []string{"*"}, PerSec: 7},
	})
	for _, tc := range []struct {
		host, addr string
		want       int
	}{
		{host: "a.example.org", addr: "10.0.0.1", want: 1},
		{host: "a.example.org.", addr: "10.0.0.1", want: 1},
		{host: "b.example.org", addr: "192.0.2.200", want: 2}, // before its network's
		{host: "x.y.b.example.org", addr: "10.0.0.1", want: 2},
		{host: "example.org", addr: "10.0.0.1", want: 3},
		{host: "xexample.org", addr: "10.0.0.1", want: 7},
		{host: "xn--bcher-kva.example", addr: "10.0.0.1", want: 2},
		{host: "2001:db8::7", addr: "2001:db8::7", want: 3},
		{host: "2001:db8::8", addr: "2001:db8::8", want: 4},
		{host: "c.invalid", addr: "192.0.2.128", want: 4},
		{host: "c.invalid", addr: "192.0.2.127", want: 5},
		{host: "c.invalid", addr: "::ffff:192.0.2.127", want: 5},
		{host: "c.test", addr: "198.51.100.7", want: 5},
		{host: "c.test", addr: "198.51.100.8", want: 6},
		{host: "test", addr: "198.51.100.8", want: 7},
		{host: "test", addr: "2001:db9::1", want: 8},
		{host: "c.invalid", addr: "", want: 8},
	} {
		addr, _ := netip.ParseAddr(tc.addr)
		if got := match(s, tc.host, addr); got != tc.want {
			t.Errorf("match(%s, %s) = %d; want %d", tc.host, tc.addr, got, tc.want)
		}
	}
	if got := match(&RuleSet{}, "a.test", netip.MustParseAddr("10.0.0.1")); got != NoRule {
		t.Errorf("without rules: %d", got)
	}
}

func TestRuleSetName(t *testing.T) {
	s := ruleSet([]HostRule{
		{Hosts: []string{"*.a.test"}}, {Networks: nets("10.0.0.0/8")},
		{Hosts: []string{"b.test"}, Networks: nets("10.0.0.0/8")},
	})
	for n, want := range []string{"", "[[rules]] 1 (*.a.test)", "[[rules]] 2 (10.0.0.0/8)",
		"[[rules]] 3 (b.test, …)"} {
		if got := s.Name(n); got != want {
			t.Errorf("Name(%d) = %q; want %q", n, got, want)
		}
	}
}

// firstMatch looks at each rule in turn.
func firstMatch(rules []HostRule, host string, addr netip.Addr) int {
	host = strings.TrimSuffix(host, ".")
	for i, r := range rules {
		for _, p := range r.Hosts {
			if p == "*" || p == host || strings.HasPrefix(p, "*.") && strings.HasSuffix(host, p[1:]) {
				return i + 1
			}
		}
		for _, n := range r.Networks {
			if n.Contains(addr.Unmap().WithZone("")) {
				return i + 1
			}
		}
	}
	return NoRule
}

func randomRules(rng *rand.Rand, some func() string, address func() netip.Addr) (rules []HostRule) {
	for range rng.IntN(12) {
		r := HostRule{}
		for range rng.IntN(3) {
			r.Hosts = append(r.Hosts, []string{"", "*."}[rng.IntN(2)]+some())
		}
		if rng.IntN(20) == 0 {
			r.Hosts = append(r.Hosts, "*")
		}
		for range rng.IntN(3) {
			addr := address()
			n, err := addr.Prefix(rng.IntN(addr.BitLen() + 1))
			if err != nil {
				panic(err)
			}
			r.Networks = append(r.Networks, n)
		}
		rules = append(rules, r)
	}
	return rules
}

// A RuleSet finds the rule that looking at each rule in turn finds.
func FuzzRuleSetMatch(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		name := func() string {
			labels := make([]string, 1+rng.IntN(4))
			for i := range labels {
				labels[i] = []string{"a", "b", "ab", "test"}[rng.IntN(4)]
			}
			return strings.Join(labels, ".")
		}
		address := func() netip.Addr {
			if rng.IntN(2) == 0 {
				return netip.AddrFrom4([4]byte{10, 0, 0, byte(rng.IntN(256))})
			}
			return netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 15: byte(rng.IntN(256))})
		}
		rules := randomRules(rng, name, address)
		s := ruleSet(rules)
		for range 50 {
			host, addr := name()+[]string{"", "."}[rng.IntN(2)], address()
			if got, want := match(s, host, addr), firstMatch(rules, host, addr); got != want {
				t.Fatalf("match(%s, %v) = %d; want %d of %+v", host, addr, got, want, rules)
			}
		}
	})
}

// Ten thousand rules cost a look-up a few steps of a search more than ten do.
func BenchmarkRuleSetMatch(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var rules []HostRule
			for i := range n {
				rules = append(rules, HostRule{
					Hosts:    []string{fmt.Sprintf("*.h%d.example", i)},
					Networks: nets(fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)),
				})
			}
			s, host, addr := ruleSet(rules), []byte("www.no.such.example"), netip.MustParseAddr("192.0.2.1")
			b.ReportAllocs()
			for b.Loop() {
				s.Limits(host, addr)
			}
		})
	}
}
