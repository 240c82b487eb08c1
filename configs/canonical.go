package configs

import (
	"errors"
	"fmt"
	"strings"

	"urlserver/internal/canonical"
)

const (
	canonicalKey = "canonical"
	maxCanonical = 1000
)

// canonicalTables are the [[canonical]].
var canonicalTables = tables{key: canonicalKey, members: []string{"hosts", "drop"},
	take: func(c *Config, values map[string]any) (member string, err error) {
		one, member, err := readCanonical(values)
		if err == nil {
			c.Canonical = append(c.Canonical, one)
		}
		return member, err
	}}

// readCanonical reads a [[canonical]] from what TOML gave. An error names the key that is at fault;
// "": the table.
func readCanonical(table map[string]any) (r canonical.Rule, member string, err error) {
	for written, v := range table {
		switch lower(written) {
		case "hosts":
			if r.Hosts, err = hostPatterns().read(v); err != nil {
				return r, "hosts", fmt.Errorf("hosts: %w", err)
			}
		case "drop":
			if r.Drop, err = readStrings(v); err != nil {
				return r, "drop", fmt.Errorf("drop: %w", err)
			}
		default:
			return r, "", fmt.Errorf("no such key as %s", shown(written))
		}
	}
	if len(r.Hosts) == 0 || len(r.Drop) == 0 {
		return r, "", errors.New(`hosts and drop are wanted: hosts as in [[rules]], and the query parameters ` +
			`that do not count there, as in drop = ["utm_*", "fbclid"]`)
	}
	for i, name := range r.Drop {
		if err := canonical.CheckName(name); err != nil {
			return r, "drop", fmt.Errorf("drop[%d]: %s: %w", i, quoted(name), err)
		}
	}
	return r, "", nil
}

// canonicals is the setting as a whole, as it stands in canonical = [ … ].
func canonicals() kind[[]canonical.Rule] {
	return kind[[]canonical.Rule]{
		allowed: "[[canonical]] tables, up to 1000",
		read: func(v any) (all []canonical.Rule, err error) {
			err = eachTable(v, "table", func(table map[string]any) error {
				r, _, err := readCanonical(table)
				all = append(all, r)
				return err
			})
			return all, err
		},
		fault: func(all []canonical.Rule) string {
			if len(all) > maxCanonical {
				return fmt.Sprintf("%d tables are too many", len(all))
			}
			return ""
		},
		text: func(all []canonical.Rule) string {
			texts := make([]string, len(all))
			for i, r := range all {
				texts[i] = "{hosts = " + tomlStrings(r.Hosts) + ", drop = " + tomlStrings(r.Drop) + "}"
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
	}
}

// canonicalIsEmbedded says that an embedded index decides what URLs are known by.
func canonicalIsEmbedded(c Config) string {
	return embedded(c, len(c.Canonical) > 0,
		"[[canonical]]: an embedded index decides what URLs are known by; do it there")
}
