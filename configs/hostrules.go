package configs

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"urlserver/internal/weburl"
)

// HostRule replaces settings for some hosts. It applies to a host that one of Hosts or one of
// Networks matches. If several rules apply to a host, the first one counts.
type HostRule struct {
	Hosts      []string       // in the form of URLs, without a final dot; "*.NAME": all below NAME; "*": all
	Networks   []netip.Prefix // of the address that requests go to
	PerSec     float64        // requests a second to its host group; 0: Req_Host_Per_Sec
	Concurrent int            // open fetches to its host group; 0: Req_Host_Concurrent
	Block      bool           // nothing is sent to it
	Group      string         // all hosts with this name are one host group; "": those that share an IP are
}

// Equal reports whether two rules say the same.
func (r HostRule) Equal(o HostRule) bool {
	return slices.Equal(r.Hosts, o.Hosts) && slices.Equal(r.Networks, o.Networks) &&
		r.PerSec == o.PerSec && r.Concurrent == o.Concurrent && r.Block == o.Block && r.Group == o.Group
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
	inRule("block", boolean(), func(r *HostRule) *bool { return &r.Block }),
	inRule("group", text("1 to 64 letters, digits, \"_\" and \"-\", not \"localhost\"", groupNameFault),
		func(r *HostRule) *string { return &r.Group }),
}

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
	tables, err := as[[]any](v)
	for i, v := range tables {
		table, isTable := v.(map[string]any)
		if !isTable {
			return nil, fmt.Errorf("rule %d is %s", i+1, typeName(v))
		}
		r, err := readRule(table)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		all = append(all, r)
	}
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
	if fault, _ := saidFault(said); fault != "" {
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
