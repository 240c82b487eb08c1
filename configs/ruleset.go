package configs

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
)

// NoRule is the number of no rule.
const NoRule = 0

// RuleSet finds the first rule that applies to a host, by the host's name or by its address. A
// look-up probes a hash table for each label of the name and for each prefix length of the rules'
// networks, however many rules there are.
//
// The zero value has no rules. A RuleSet does not change and is safe for concurrent use.
type RuleSet struct {
	rules    []HostRule
	exact    map[string]int // the first rule with a name
	below    map[string]int // the first with "*." and a name
	all      int            // the first with "*"
	networks map[netip.Prefix]int
	lengths  [2][]int // prefix lengths in networks: of IPv4, of IPv6; each once
}

// NewRuleSet returns a RuleSet of valid rules.
func NewRuleSet(rules []HostRule) *RuleSet {
	s := &RuleSet{
		rules: rules, exact: map[string]int{}, below: map[string]int{}, networks: map[netip.Prefix]int{},
	}
	for i, r := range rules {
		for _, pattern := range r.Hosts {
			s.add(pattern, i+1)
		}
		for _, n := range r.Networks {
			addFirst(s.networks, n, i+1)
			lengths := &s.lengths[familyOf(n.Addr())]
			if !slices.Contains(*lengths, n.Bits()) {
				*lengths = append(*lengths, n.Bits())
			}
		}
	}
	return s
}

func (s *RuleSet) add(pattern string, n int) {
	name, below := bytes.CutPrefix([]byte(pattern), []byte(belowMark))
	switch {
	case pattern == anyHost:
		s.all = firstRule(s.all, n)
	case below:
		addFirst(s.below, string(name), n)
	default:
		addFirst(s.exact, pattern, n)
	}
}

// addFirst enters rule n under key unless an earlier rule is there.
func addFirst[K comparable](m map[K]int, key K, n int) { m[key] = firstRule(m[key], n) }

// firstRule returns the first of two rules by number; NoRule is none.
func firstRule(a, b int) int {
	if a == NoRule || b != NoRule && b < a {
		return b
	}
	return a
}

func familyOf(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

// Match returns the number, from 1, of the first rule that applies to a host, or NoRule. host is in
// the form of a URL; a dot at its end is ignored. addr is the address that requests go to, or the
// zero Addr.
func (s *RuleSet) Match(host []byte, addr netip.Addr) (n int) {
	if len(s.rules) == 0 {
		return NoRule
	}
	return firstRule(s.byName(host), s.byAddr(addr))
}

func (s *RuleSet) byName(host []byte) (n int) {
	host = bytes.TrimSuffix(host, []byte("."))
	n = firstRule(s.all, s.exact[string(host)])
	if len(s.below) == 0 {
		return n
	}
	for {
		dot := bytes.IndexByte(host, '.')
		if dot < 0 {
			return n
		}
		host = host[dot+1:]
		n = firstRule(n, s.below[string(host)])
	}
}

func (s *RuleSet) byAddr(addr netip.Addr) (n int) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return NoRule
	}
	for _, bits := range s.lengths[familyOf(addr)] {
		network, err := addr.Prefix(bits)
		if err == nil {
			n = firstRule(n, s.networks[network])
		}
	}
	return n
}

// Rule returns rule n, or the zero HostRule for NoRule.
func (s *RuleSet) Rule(n int) HostRule {
	if n == NoRule {
		return HostRule{}
	}
	return s.rules[n-1]
}

// Name describes rule n to people by its number and its first host or network; NoRule is "".
func (s *RuleSet) Name(n int) string {
	r := s.Rule(n)
	what := ""
	switch {
	case n == NoRule:
		return ""
	case len(r.Hosts) > 0:
		what = r.Hosts[0]
	default:
		what = r.Networks[0].String()
	}
	if len(r.Hosts)+len(r.Networks) > 1 {
		what += ", …"
	}
	return fmt.Sprintf("[[rules]] %d (%s)", n, what)
}
