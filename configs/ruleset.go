package configs

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"
)

// NoRule stands for no rule where the number of a rule is wanted.
const NoRule = 0

// RuleSet finds the rules that count for a site and for an address. A look-up probes a hash table
// for each label of the name, and searches an ordered list of the rules' networks.
//
// There are two levels, the site and the address. At each level the first rule counts that is about
// it:
//   - A rule by hosts is about the sites that it names.
//   - A rule by networks is about the addresses there. It is about the sites there, too, if it has
//     SitePerSec, SiteConcurrent, Block or Group.
//   - A rule with hosts and networks is one of each.
//   - A rule with nothing but hosts or networks sets nothing. It only keeps later rules from
//     counting: a rule by hosts for the sites, a rule by networks at both levels.
//
// The known shared networks come after the rules of the settings file.
//
// The zero value has no rules. A RuleSet does not change and is safe for concurrent use.
type RuleSet struct {
	rules     []HostRule
	own       int            // how many of them are of the settings file; they are first
	exact     map[string]int // the first rule with a name
	below     map[string]int // the first with "*." and a name
	all       int            // the first with "*"
	addresses networkRules   // of addresses
	sites     networkRules   // of the sites at addresses
	shared    map[string]*SharedNetwork
}

// SharedNetwork is a network on which many strangers' sites live. Pace holds for all of them
// together; it is never 0.
type SharedNetwork struct {
	Name string // unique, and the same in all daemons with the same settings
	Pace
}

// HostLimits is what the rules say about requests to a host at an address. The zero value is for a
// host without rules.
type HostLimits struct {
	Site    Pace           // of its site; 0: Config.SitePace
	Raises  bool           // Site is of a rule by hosts; if all sites of the address have one, it may be as fast
	Block   bool           // nothing is sent to the site
	Group   string         // all hosts with this name are one site; "": the host is a site
	Address Pace           // of the address; 0: Config.AddressPace, or as Raises says. 0 if Shared is set
	Shared  *SharedNetwork // that the address is in; nil: none. A RuleSet has one pointer for each

	SiteRule, AddressRule int // numbers for Name; NoRule: none
}

// RuleSet returns the rules of a valid configuration.
func (c Config) RuleSet() *RuleSet {
	s := &RuleSet{
		rules: slices.Concat(c.Rules, c.knownShared()), own: len(c.Rules), exact: map[string]int{},
		below: map[string]int{}, shared: map[string]*SharedNetwork{},
	}
	for i, r := range s.rules {
		for _, pattern := range r.Hosts {
			s.add(pattern, i+1)
		}
		for _, n := range r.Networks {
			s.addresses.add(n, i+1)
			if r.sitePace() != (Pace{}) || r.Block || r.Group != "" || r.saysNothing() {
				s.sites.add(n, i+1)
			}
		}
		if name := sharedName(r); r.Shared && s.shared[name] == nil {
			site := r.sitePace().or(c.SitePace())
			pace := Pace{sharedTimes * site.PerSec, sharedTimes * site.Concurrent}
			s.shared[name] = &SharedNetwork{name, r.pace().or(pace)}
		}
	}
	s.addresses.cut()
	s.sites.cut()
	return s
}

// SameRules reports whether the RuleSets of two configurations say the same.
func (c Config) SameRules(o Config) bool {
	if !equalRules(c.Rules, o.Rules) || c.Politeness.SharedNetworks != o.Politeness.SharedNetworks ||
		!equalRules(c.shared, o.shared) {
		return false
	}
	return c.SitePace() == o.SitePace() // that of a shared network may follow from it
}

func sharedName(r HostRule) string {
	if r.Name == "" && r.Shared {
		return r.Networks[0].String()
	}
	return r.Name
}

// networkRules finds the first rule for an address: the addresses of each family are cut into spans
// under one rule, in order.
type networkRules struct {
	networks []networkRule
	spans    []addrSpan // ordered; each ends where the next one begins
}

// networkRule is a network of a rule.
type networkRule struct {
	netip.Prefix
	rule int
}

// addrSpan is a range of addresses with the same first rule.
type addrSpan struct {
	first netip.Addr
	rule  int // NoRule: none
}

func (t *networkRules) add(n netip.Prefix, rule int) {
	t.networks = append(t.networks, networkRule{n.Masked(), rule})
}

// cut makes the spans after the last add. A network contains another one, or has no address in
// common with it. So with the networks in order of their first addresses, the larger ones first,
// those that contain an address are a stack.
func (t *networkRules) cut() {
	sort.Slice(t.networks, func(i, j int) bool {
		a, b := &t.networks[i], &t.networks[j]
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()), cmp.Compare(a.rule, b.rule)) < 0
	})
	var open []networkRule // the networks that contain the next address; rule is the first rule of all so far
	for _, n := range t.networks {
		open = t.closeBefore(open, n.Addr())
		if len(open) > 0 {
			n.rule = firstRule(n.rule, open[len(open)-1].rule)
		}
		t.begin(n.Addr(), n.rule)
		open = append(open, n)
	}
	t.closeBefore(open, netip.Addr{})
	t.networks = nil
}

// closeBefore ends the networks that do not contain an address, the innermost first. With the zero
// Addr it ends all. It returns the others.
func (t *networkRules) closeBefore(open []networkRule, addr netip.Addr) []networkRule {
	for len(open) > 0 && !open[len(open)-1].Contains(addr) {
		after := lastAddr(open[len(open)-1].Prefix).Next()
		if open = open[:len(open)-1]; !after.IsValid() {
			continue // it reached the family's end
		}
		if len(open) > 0 && open[len(open)-1].Contains(after) {
			t.begin(after, open[len(open)-1].rule)
		} else if len(open) == 0 {
			t.begin(after, NoRule)
		}
	}
	return open
}

// begin begins a span behind all others, or changes the rule of the last one if it begins there.
func (t *networkRules) begin(first netip.Addr, rule int) {
	if n := len(t.spans); n > 0 && t.spans[n-1].first == first {
		t.spans[n-1].rule = rule
		return
	}
	t.spans = append(t.spans, addrSpan{first, rule})
}

// lastAddr returns the last address of a network.
func lastAddr(n netip.Prefix) netip.Addr {
	bytes := n.Addr().AsSlice()
	for bit := n.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// first returns the first rule for an address, or NoRule.
func (t *networkRules) first(addr netip.Addr) int {
	n, exact := slices.BinarySearchFunc(t.spans, addr, func(s addrSpan, addr netip.Addr) int {
		return s.first.Compare(addr)
	})
	if !exact {
		n--
	}
	if n < 0 || t.spans[n].first.BitLen() != addr.BitLen() {
		return NoRule
	}
	return t.spans[n].rule
}

// Limits returns what the rules say about requests to a host. host is in the form of a URL; a dot
// at its end is ignored. addr is the address that requests go to. With the zero Addr, only rules by
// hosts apply.
func (s *RuleSet) Limits(host []byte, addr netip.Addr) (l HostLimits) {
	if len(s.rules) == 0 {
		return l
	}
	addr = addr.Unmap().WithZone("")
	byName := s.byName(host)
	l.SiteRule = firstRule(byName, s.sites.first(addr))
	l.AddressRule = s.addresses.first(addr)
	site, address := s.Rule(l.SiteRule), s.Rule(l.AddressRule)
	l.Block, l.Group = site.Block, site.Group
	if l.Raises = byName != NoRule && byName == l.SiteRule; l.Raises {
		l.Site = site.pace()
	} else {
		l.Site = site.sitePace()
	}
	if address.Shared {
		l.Shared = s.shared[sharedName(address)]
	} else {
		l.Address = address.pace()
	}
	return l
}

// SharedNetworks returns all shared networks by name.
func (s *RuleSet) SharedNetworks() map[string]*SharedNetwork { return s.shared }

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

// byName returns the first rule that names a host, or NoRule. A dot at its end is ignored.
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

// Rule returns rule n, or the zero HostRule for NoRule.
func (s *RuleSet) Rule(n int) HostRule {
	if n == NoRule {
		return HostRule{}
	}
	return s.rules[n-1]
}

// Name describes rule n to people by its number and its name, first host or first network; NoRule
// is "".
func (s *RuleSet) Name(n int) string {
	r := s.Rule(n)
	what := ""
	switch {
	case n == NoRule:
		return ""
	case n > s.own:
		return "shared network " + sharedName(r)
	case r.Name != "":
		return fmt.Sprintf("[[rules]] %d (%s)", n, r.Name)
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
