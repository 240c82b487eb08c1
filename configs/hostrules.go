package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"urlserver/internal/weburl"
)

// HostRule replaces settings for some sites and addresses. For the sites that Hosts match, PerSec
// and Concurrent are the pace of each site. For Networks they are the pace of each address there,
// or of all of them together if Shared is set. RuleSet says which of several rules counts.
type HostRule struct {
	Hosts          []string       // in the form of URLs, without a final dot; "*.NAME": all below NAME; "*": all
	Networks       []netip.Prefix // of the address that requests go to
	PerSec         float64        // requests a second; 0: as without the rule
	Concurrent     int            // open requests; 0: as without the rule
	SitePerSec     float64        // requests a second to each site in Networks; 0: as for all sites
	SiteConcurrent int            // open requests to each site in Networks; 0: as for all sites
	Block          bool           // nothing is sent there
	Group          string         // all hosts with this name are one site; "": each host is a site
	Shared         bool           // Networks are a shared network
	Name           string         // of the shared network; "": its first network
}

// Equal reports whether two rules say the same.
func (r HostRule) Equal(o HostRule) bool {
	return slices.Equal(r.Hosts, o.Hosts) && slices.Equal(r.Networks, o.Networks) &&
		r.pace() == o.pace() && r.sitePace() == o.sitePace() &&
		r.Block == o.Block && r.Group == o.Group && r.Shared == o.Shared && r.Name == o.Name
}

func (r HostRule) pace() Pace     { return Pace{r.PerSec, r.Concurrent} }
func (r HostRule) sitePace() Pace { return Pace{r.SitePerSec, r.SiteConcurrent} }

// saysNothing reports whether a rule only keeps later rules off.
func (r HostRule) saysNothing() bool {
	return r.pace() == Pace{} && r.sitePace() == Pace{} && !r.Block && r.Group == "" && !r.Shared
}

// contradiction says what in a rule does not go together; "": nothing.
func (r HostRule) contradiction() string {
	switch {
	case len(r.Hosts) > 0 && r.sitePace() != Pace{}:
		return "site_per_sec and site_concurrent are for networks; in a rule with hosts, per_sec " +
			"and concurrent are the site's"
	case len(r.Hosts) > 0 && r.Shared:
		return "a shared network has networks and no hosts; give the hosts a rule of their own"
	case r.Group != "" && r.Shared:
		return "group makes one site of all hosts there, and shared says that they are many strangers' sites"
	case r.Name != "" && !r.Shared:
		return "name is for a rule with shared = true"
	}
	return ""
}

const (
	maxRules = 10_000 // beyond what anybody writes by hand

	anyHost      = "*"
	belowMark    = "*."
	maxGroupName = 64
)

// ruleKey is one key of [[rules]].
type ruleKey struct {
	name    string // "rules.per_sec"
	allowed string
	read    func(r *HostRule, v any) error // sets the field unless it errs
	fault   func(r HostRule) string        // "": nothing is wrong with the field
	text    func(r HostRule) string        // the field as TOML; "": it is not set
}

func inRule[T any](name string, k kind[T], field func(*HostRule) *T) ruleKey {
	var unset T
	return ruleKey{
		name: rulesKey + "." + name, allowed: k.allowed,
		read: func(r *HostRule, v any) error {
			t, err := k.read(v)
			if err == nil {
				*field(r) = t
			}
			return err
		},
		fault: func(r HostRule) string { return k.fault(*field(&r)) },
		text: func(r HostRule) string {
			if text := k.text(*field(&r)); text != k.text(unset) {
				return text
			}
			return ""
		},
	}
}

const rulesKey = "rules"

// ruleKeys are all keys of [[rules]]. The first two say which hosts a rule is for, the others what
// holds for them.
var ruleKeys = []ruleKey{
	inRule("hosts", hostPatterns(), func(r *HostRule) *[]string { return &r.Hosts }),
	inRule("networks", someNetworks(), func(r *HostRule) *[]netip.Prefix { return &r.Networks }),
	inRule("per_sec", number(slowest, fastest), func(r *HostRule) *float64 { return &r.PerSec }),
	inRule("concurrent", integer(1, maxConcurrent), func(r *HostRule) *int { return &r.Concurrent }),
	inRule("site_per_sec", number(slowest, fastest), func(r *HostRule) *float64 { return &r.SitePerSec }),
	inRule("site_concurrent", integer(1, maxConcurrent), func(r *HostRule) *int { return &r.SiteConcurrent }),
	inRule("block", boolean(), func(r *HostRule) *bool { return &r.Block }),
	inRule("group", text(nameWords, groupNameFault), func(r *HostRule) *string { return &r.Group }),
	inRule("shared", boolean(), func(r *HostRule) *bool { return &r.Shared }),
	inRule("name", text(nameWords, groupNameFault), func(r *HostRule) *string { return &r.Name }),
}

const nameWords = "1 to 64 letters, digits, \"_\" and \"-\", not \"localhost\""

func findRuleKey(name string) (k ruleKey, ok bool) {
	i := slices.IndexFunc(ruleKeys, func(k ruleKey) bool { return k.name == name })
	if i < 0 {
		return ruleKey{}, false
	}
	return ruleKeys[i], true
}

// hostPatterns are kept in normal form, whatever form they are written in.
func hostPatterns() kind[[]string] {
	return kind[[]string]{
		allowed: "a list of host names, \"*.example.org\" for all names below one, IP addresses, or " +
			"\"*\" for all hosts",
		read: func(v any) ([]string, error) {
			all, err := readStrings(v)
			for i, s := range all {
				if all[i], err = normalPattern(s); err != nil {
					return nil, err
				}
			}
			return all, err
		},
		fault: func(all []string) string {
			if len(all) == 0 {
				return "is empty"
			}
			for _, s := range all {
				if normal, err := normalPattern(s); err != nil || normal != s {
					return quoted(s) + " is no host in normal form"
				}
			}
			return ""
		},
		text: tomlStrings,
	}
}

func normalPattern(s string) (string, error) {
	if s == anyHost {
		return s, nil
	}
	name, below := strings.CutPrefix(s, belowMark)
	host, err := weburl.Host(name)
	host = strings.TrimSuffix(host, ".")
	_, notIP := netip.ParseAddr(host)
	switch {
	case err != nil || strings.Contains(host, "*"):
		return "", fmt.Errorf("%s is no host", quoted(s))
	case below && notIP == nil:
		return "", fmt.Errorf("%s: there is nothing below an IP address", quoted(s))
	case below:
		return belowMark + host, nil
	}
	return host, nil
}

func someNetworks() kind[[]netip.Prefix] {
	k := networks()
	k.fault = func(all []netip.Prefix) string {
		if len(all) == 0 {
			return "is empty"
		}
		return networksFault(all)
	}
	return k
}

// groupNameFault holds names to those that a reservation takes for aliases.
func groupNameFault(s string) string {
	if s == "" || len(s) > maxGroupName || strings.Trim(s, labelBytes) != "" || lower(s) == "localhost" {
		return quoted(s) + " is no name of a group"
	}
	return ""
}

// hostRules is the setting as a whole, as it stands in rules = [ … ].
func hostRules() kind[[]HostRule] {
	return kind[[]HostRule]{
		allowed: "[[rules]] tables, up to 10000",
		read:    readRules,
		fault:   rulesFault,
		text: func(all []HostRule) string {
			texts := make([]string, len(all))
			for i, r := range all {
				texts[i] = tomlRule(r)
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
	}
}

func readRules(v any) (all []HostRule, err error) {
	err = eachTable(v, "rule", func(table map[string]any) error {
		r, err := readRule(table)
		all = append(all, r)
		return err
	})
	return all, err
}

func readRule(table map[string]any) (r HostRule, err error) {
	said := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		k, ok := findRuleKey(rulesKey + "." + lower(name))
		if !ok {
			return r, fmt.Errorf("no such key as %s", shown(name))
		}
		err := k.read(&r, table[name])
		if err == nil && k.fault(r) != "" {
			err = errors.New(k.fault(r))
		}
		if err != nil {
			return r, fmt.Errorf("%s %w", lastPart(k.name), err)
		}
		said[k.name]++
	}
	fault, _ := saidFault(said)
	if fault = cmp.Or(fault, r.contradiction()); fault != "" {
		return r, errors.New(fault)
	}
	return r, nil
}

// saidFault is about the keys that a rule has; "": nothing is wrong.
func saidFault(said map[string]int) (fault, allowed string) {
	var names [2][]string
	some := [2]bool{}
	for i, k := range ruleKeys {
		part := min(i/2, 1)
		names[part] = append(names[part], lastPart(k.name))
		some[part] = some[part] || said[k.name] > 0
	}
	switch {
	case !some[0]:
		return "this rule is for no host", "one of " + strings.Join(names[0], ", ")
	case !some[1]:
		return "this rule says nothing", "one of " + strings.Join(names[1], ", ")
	}
	return "", ""
}

func rulesFault(all []HostRule) string {
	if len(all) > maxRules {
		return fmt.Sprintf("%d rules are too many", len(all))
	}
	for i, r := range all {
		if len(r.Hosts) == 0 && len(r.Networks) == 0 {
			return fmt.Sprintf("rule %d is for no host", i+1)
		}
		for _, k := range ruleKeys {
			if fault := k.fault(r); k.text(r) != "" && fault != "" {
				return fmt.Sprintf("rule %d: %s: %s", i+1, lastPart(k.name), fault)
			}
		}
		if fault := r.contradiction(); fault != "" {
			return fmt.Sprintf("rule %d: %s", i+1, fault)
		}
	}
	return namesFault(all)
}

// namesFault is about rules that give two shared networks one name.
func namesFault(all []HostRule) string {
	numbers := map[string]int{}
	for i, r := range all {
		if r.Name == "" {
			continue
		}
		if n := numbers[r.Name]; n != 0 {
			return fmt.Sprintf("rule %d: the shared network of rule %d has the name %q already",
				i+1, n, r.Name)
		}
		numbers[r.Name] = i + 1
	}
	return ""
}

// tomlRule is a rule as an inline table. One that only keeps later rules off says so.
func tomlRule(r HostRule) string {
	var pairs []string
	says := false
	for i, k := range ruleKeys {
		if text := k.text(r); text != "" {
			pairs = append(pairs, lastPart(k.name)+" = "+text)
			says = says || i >= 2
		}
	}
	if !says {
		pairs = append(pairs, "block = false")
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}
