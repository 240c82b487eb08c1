package configs

import (
	_ "embed"
	"fmt"
	"slices"
)

// SharedBuiltin is the value of politeness.shared_networks for the list that the program contains.
const SharedBuiltin = "builtin"

const sharedKey = "politeness.shared_networks"

// sharedTimes is how many times the pace of a site a shared network has that gives no pace.
const sharedTimes = 10

// builtinShared is the list of known shared networks, in the form of the file that
// politeness.shared_networks can name. scripts/shared-networks renews it.
//
//go:embed shared_networks.toml
var builtinShared []byte

func sharedNetworksSetting() setting {
	s := at(sharedKey, live, text(`"`+SharedBuiltin+`", "" or `+fileWords, func(s string) string {
		if s == "" {
			return ""
		}
		return pathFault(s)
	}), func(c *Config) *string { return &c.Politeness.SharedNetworks })
	s.copy = func(to *Config, from Config) {
		to.Politeness.SharedNetworks, to.shared = from.Politeness.SharedNetworks, from.shared
	}
	return s
}

// loadShared reads the file that politeness.shared_networks names; nil if it names none.
func loadShared(path string) ([]HostRule, error) {
	if path == "" || path == SharedBuiltin {
		return nil, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sharedKey, err)
	}
	return parseShared(path, data)
}

// parseShared parses a list of shared networks: [[rules]] with networks and shared = true.
func parseShared(name string, data []byte) ([]HostRule, error) {
	r := newReader(name)
	if r.isText(data) {
		r.read(string(data), nil)
	}
	for key, line := range r.set {
		if key != rulesKey {
			r.mistake(line, r.settings[key].name, "a list of shared networks has only [[rules]]", "")
		}
	}
	for i, rule := range r.config.Rules {
		if !rule.Shared && len(r.mistakes) == 0 {
			r.mistake(r.set[rulesKey], rulesKey, fmt.Sprintf("rule %d has no shared = true", i+1), "")
		}
	}
	if err := errorOf(r.mistakes); err != nil {
		return nil, err
	}
	return r.config.Rules, nil
}

// knownShared returns the rules of the known shared networks.
func (c Config) knownShared() []HostRule {
	if c.Politeness.SharedNetworks != SharedBuiltin {
		return c.shared
	}
	rules, err := parseShared("shared_networks.toml", builtinShared)
	if err != nil {
		panic(fmt.Sprintf("configs: the list in the program: %v", err)) // TestBuiltinShared reads it
	}
	return rules
}

func equalRules(a, b []HostRule) bool { return slices.EqualFunc(a, b, HostRule.Equal) }
