package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"urlserver/internal/scope"
)

// Crawl is the scope of a crawl ID.
type Crawl struct {
	ID    string
	Scope scope.Scope // in normal form
}

const (
	crawlsKey  = "crawls"
	maxCrawls  = 10_000
	maxCrawlID = 1000 // bytes
)

// crawlMembers are the keys of a [[crawls]]: id, and the members of a scope.
var crawlMembers = []string{"id", "domains", "hosts", "surts", "allow", "deny", "deny_extensions", "max_depth",
	"max_pages", "max_pages_domain", "until"}

// crawlTables are the [[crawls]].
var crawlTables = tables{key: crawlsKey, members: crawlMembers,
	take: func(c *Config, values map[string]any) (member string, err error) {
		one, err := readCrawl(values)
		if f, ok := errors.AsType[*scope.Fault](err); ok {
			return f.Member, err
		}
		if err == nil {
			c.Crawls = append(c.Crawls, one)
		}
		return "", err
	}}

// readCrawl reads a [[crawls]] from what TOML gave.
func readCrawl(table map[string]any) (c Crawl, err error) {
	values := map[string]any{}
	for _, written := range slices.Sorted(maps.Keys(table)) {
		name := lower(written)
		if !slices.Contains(crawlMembers, name) {
			return c, fmt.Errorf("no such key as %s", shown(written))
		}
		values[name] = table[written]
	}
	id, isText := values["id"].(string)
	if !isText || id == "" || len(id) > maxCrawlID || strings.ContainsRune(id, 0) {
		return c, fmt.Errorf("id is wanted, the ID of the crawl: a string of 1 to %d bytes without U+0000", maxCrawlID)
	}
	delete(values, "id")
	if t, is := values["until"].(time.Time); is && t.Year() == 0 {
		return c, &scope.Fault{Member: "until", Index: -1, Why: t.Format(time.TimeOnly) + " has no date"}
	}
	text, err := json.Marshal(values)
	if err != nil { // nan, inf, or a year beyond 9999
		return c, errors.New("it has a value that no scope can have")
	}
	c.ID = id
	c.Scope, err = scope.Parse(text)
	return c, err
}

// crawls is the setting as a whole, as it stands in crawls = [ … ].
func crawls() kind[[]Crawl] {
	return kind[[]Crawl]{
		allowed: "[[crawls]] tables, up to 10000",
		read: func(v any) (all []Crawl, err error) {
			err = eachTable(v, "crawl", func(table map[string]any) error {
				c, err := readCrawl(table)
				all = append(all, c)
				return err
			})
			return all, err
		},
		fault: crawlsFault,
		text: func(all []Crawl) string {
			texts := make([]string, len(all))
			for i, c := range all {
				texts[i] = tomlCrawl(c)
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
	}
}

func crawlsFault(all []Crawl) string {
	if len(all) > maxCrawls {
		return fmt.Sprintf("%d crawls are too many", len(all))
	}
	seen := map[string]int{}
	for i, c := range all {
		if n := seen[c.ID]; n != 0 {
			return fmt.Sprintf("crawl %d: crawl %d has the id %q already", i+1, n, c.ID)
		}
		seen[c.ID] = i + 1
	}
	return ""
}

// tomlCrawl is a crawl as an inline table.
func tomlCrawl(c Crawl) string {
	s := c.Scope
	pairs := []string{"id = " + tomlString(c.ID)}
	for i, list := range [][]string{s.Domains, s.Hosts, s.SURTs, s.Allow, s.Deny, s.DenyExtensions} {
		var texts []string
		for _, one := range list {
			texts = append(texts, tomlString(one))
		}
		if len(texts) > 0 {
			pairs = append(pairs, crawlMembers[1+i]+" = ["+strings.Join(texts, ", ")+"]")
		}
	}
	if s.MaxDepth != nil {
		pairs = append(pairs, "max_depth = "+strconv.Itoa(*s.MaxDepth))
	}
	if s.MaxPages > 0 {
		pairs = append(pairs, "max_pages = "+strconv.FormatInt(s.MaxPages, 10))
	}
	if s.MaxPagesDomain > 0 {
		pairs = append(pairs, "max_pages_domain = "+strconv.FormatInt(s.MaxPagesDomain, 10))
	}
	if !s.Until.IsZero() {
		pairs = append(pairs, "until = "+s.Until.Format(time.RFC3339Nano))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// crawlsAreEmbedded returns what is wrong if there are [[crawls]] and the index is not embedded:
// only an embedded index keeps scopes.
func crawlsAreEmbedded(c Config) string {
	return embedded(c, len(c.Crawls) > 0, "[[crawls]]: an embedded index keeps the scopes of crawls; say them there")
}
