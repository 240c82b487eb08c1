package configs

import (
	_ "embed"
	"strings"
)

// Sample is urlserver.toml, the commented settings file with every key at its
// default.
//
//go:embed urlserver.toml
var Sample string

// String is the configuration as TOML, every key, with "***" for tokens.
func (c Config) String() string {
	return c.toml(func(s setting) string { return s.shown(&c) })
}

// tableOf is the table that a setting stands in, "" above the first one.
func tableOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// toml is every setting with the text that value has for it.
func (c Config) toml(value func(setting) string) string {
	var b strings.Builder
	table := ""
	for _, s := range settings() {
		key := s.name
		if t := tableOf(s.name); t != "" {
			key = lastPart(s.name)
			if t != table {
				table = t
				b.WriteString("\n[" + t + "]\n")
			}
		}
		b.WriteString(key + " = " + value(s) + "\n")
	}
	return b.String()
}
