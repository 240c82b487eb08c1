// Package hostrules finds the rule of the settings that is for a host: by its name, or by the address that is asked.
//
// A look-up costs a few probes of hash tables, one for each label of the name and one for each length of network that
// the rules have, however many rules there are.
package hostrules

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"urlserver/configs"
)

// None is the number of no rule.
const None = 0

// Set is rules to look hosts up in. It does not change and is safe for concurrent use. The zero value is without rules.
type Set struct {
	rules    []configs.HostRule
	exact    map[string]int // the first rule with a name
	below    map[string]int // the first with "*." and a name
	all      int            // the first with "*"
	networks map[netip.Prefix]int
	lengths  [2][]int // of networks: IPv4, IPv6; each once
}

// New returns a Set of rules that configs has checked.
func New(rules []configs.HostRule) *Set {
	s := &Set{rules: rules, exact: map[string]int{}, below: map[string]int{}, networks: map[netip.Prefix]int{}}
	for i, r := range rules {
		for _, pattern := range r.Hosts {
			s.add(pattern, i+1)
		}
		for _, n := range r.Networks {
			first(s.networks, n, i+1)
			lengths := &s.lengths[family(n.Addr())]
			if !slices.Contains(*lengths, n.Bits()) {
				*lengths = append(*lengths, n.Bits())
			}
		}
	}
	return s
}

func (s *Set) add(pattern string, n int) {
	name, below := bytes.CutPrefix([]byte(pattern), []byte("*."))
	switch {
	case pattern == "*":
		s.all = lower(s.all, n)
	case below:
		first(s.below, string(name), n)
	default:
		first(s.exact, pattern, n)
	}
}

// first notes the first rule for a key.
func first[K comparable](m map[K]int, key K, n int) { m[key] = lower(m[key], n) }

// lower is the lesser of two numbers of rules.
func lower(a, b int) int {
	if a == None || b != None && b < a {
		return b
	}
	return a
}

func family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

// Match returns the number of the first rule that is for a host, from 1, or None. host is as URLs have it, a dot at its
// end does not count; addr is the address that is asked.
func (s *Set) Match(host []byte, addr netip.Addr) (n int) {
	if len(s.rules) == 0 {
		return None
	}
	return lower(s.byName(host), s.byAddr(addr))
}

func (s *Set) byName(host []byte) (n int) {
	host = bytes.TrimSuffix(host, []byte("."))
	n = lower(s.all, s.exact[string(host)])
	if len(s.below) == 0 {
		return n
	}
	for {
		dot := bytes.IndexByte(host, '.')
		if dot < 0 {
			return n
		}
		host = host[dot+1:]
		n = lower(n, s.below[string(host)])
	}
}

func (s *Set) byAddr(addr netip.Addr) (n int) {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return None
	}
	for _, bits := range s.lengths[family(addr)] {
		network, err := addr.Prefix(bits)
		if err == nil {
			n = lower(n, s.networks[network])
		}
	}
	return n
}

// Rule is rule n; n may be None.
func (s *Set) Rule(n int) configs.HostRule {
	if n == None {
		return configs.HostRule{}
	}
	return s.rules[n-1]
}

// Name is what rule n goes by towards people: its number, and the first that it is for.
func (s *Set) Name(n int) string {
	r := s.Rule(n)
	what := ""
	switch {
	case n == None:
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
