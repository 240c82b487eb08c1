// Package scope says which URLs belong to a crawl.
//
// A [Scope] is what an operator or an application writes: JSON, or [[crawls]] of the settings. It is
// compiled once, to a [Rules], which then decides on any number of URLs.
package scope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"urlserver/internal/weburl"
)

// Bounds of what a scope may contain, since it comes from outside.
const (
	// MaxText bounds the JSON of a scope, in bytes.
	MaxText = 128 << 10
	// MaxList bounds each list, as the requests of crawl control do.
	MaxList = 1000
	// MaxDepth is the largest max_depth.
	MaxDepth = 65_534
	// MaxPages is the largest max_pages and max_pages_domain: what JSON numbers carry exactly.
	MaxPages = 1 << 53

	maxPattern = 1000   // bytes of a pattern
	maxProgram = 20_000 // instructions of all patterns together; matching costs at most so many steps a byte
	maxSURT    = 2000   // bytes of a SURT prefix
	maxEnding  = 40     // bytes of an extension
)

// Scope is what belongs to a crawl. The zero value is a scope without bounds.
//
// A URL is in scope if all of these hold: it is in one of Domains, Hosts or SURTs, if there are any;
// one of Allow matches it, if there are any; none of Deny does; it has none of DenyExtensions; its
// depth, the counts of the crawl, and the time are within the bounds.
type Scope struct {
	Domains        []string  `json:"domains"`             // each with all hosts below it
	Hosts          []string  `json:"hosts"`               // these alone, as weburl's Host writes them
	SURTs          []string  `json:"surts"`               // prefixes in Heritrix' SURT form, with http for https
	Allow          []string  `json:"allow"`               // RE2, searched for in the whole URL
	Deny           []string  `json:"deny"`                // as Allow
	DenyExtensions []string  `json:"deny_extensions"`     // of the URL's path, in lower case, without dot
	MaxDepth       *int      `json:"max_depth,omitempty"` // links from a seed; 0: seeds alone; nil: any
	MaxPages       int64     `json:"max_pages,omitempty"` // documents of the crawl; 0: any number
	MaxPagesDomain int64     `json:"max_pages_domain,omitempty"`
	Until          time.Time `json:"until,omitzero"` // nothing is in scope from then on
}

// Fault is what is wrong with a scope.
type Fault struct {
	Member string // "deny"
	Index  int    // in the list; -1: the member is no list, or the fault is of the whole list
	Why    string
}

// Error names the place: "deny[2]: …".
func (f *Fault) Error() string {
	if f.Index >= 0 {
		return fmt.Sprintf("%s[%d]: %s", f.Member, f.Index, f.Why)
	}
	return f.Member + ": " + f.Why
}

// Parse reads a scope as JSON, as strictly as settings are read, and brings it into its one form.
// An error of a member is a *[Fault].
func Parse(text []byte) (s Scope, err error) {
	if len(text) > MaxText {
		return s, fmt.Errorf("scope: it has %d bytes; at most %d are read", len(text), MaxText)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		if f := faultOf(text); f != nil {
			return s, f
		}
		return s, fmt.Errorf("scope: %w", plain(err))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return s, errors.New("scope: more behind the JSON object")
	}
	if s.Until.IsZero() {
		var given struct{ Until *time.Time }
		if json.Unmarshal(text, &given) == nil && given.Until != nil { // else it would be no end at all
			return s, &Fault{"until", -1, "the first second of year 1 is no end of a crawl"}
		}
	}
	return s.Normal()
}

// faultOf returns the first member, by name, whose value is of the wrong type, or nil.
func faultOf(text []byte) *Fault {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		value := members[member]
		alone, _ := json.Marshal(map[string]json.RawMessage{member: value}) // it was read just now
		switch err := json.Unmarshal(alone, &Scope{}); {
		case err == nil:
		case strings.EqualFold(member, "until"):
			return &Fault{"until", -1, fmt.Sprintf(
				"%.100s is no date and time as in RFC 3339, for instance 2030-01-01T00:00:00Z", value)}
		default:
			return &Fault{member, firstNoText(value), plain(err).Error()}
		}
	}
	return nil
}

// firstNoText returns the index of the first element of a list that is no string, or -1 for what is
// no list.
func firstNoText(value json.RawMessage) int {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return -1
	}
	return slices.IndexFunc(list, func(one json.RawMessage) bool {
		return json.Unmarshal(one, new(string)) != nil
	})
}

// plain makes an error of package json speak without Go's types.
func plain(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err
	case wrong.Field == "":
		return fmt.Errorf("a JSON %s; an object is wanted", wrong.Value)
	}
	return fmt.Errorf("a JSON %s is of the wrong type", wrong.Value)
}

// Normal returns s in normal form: hosts in lower case and Punycode, extensions without dot, no
// list nil. The error is a *[Fault].
func (s Scope) Normal() (Scope, error) {
	if err := s.numbers(); err != nil {
		return s, err
	}
	for _, l := range []struct {
		member string
		list   *[]string
		form   func(string) (string, error)
	}{
		{"domains", &s.Domains, domainForm}, {"hosts", &s.Hosts, hostForm}, {"surts", &s.SURTs, surtForm},
		{"allow", &s.Allow, patternForm}, {"deny", &s.Deny, patternForm},
		{"deny_extensions", &s.DenyExtensions, extensionForm},
	} {
		list, err := normalList(l.member, *l.list, l.form)
		if err != nil {
			return s, err
		}
		*l.list = list
	}
	_, err := compile(&s)
	return s, err
}

func (s *Scope) numbers() error {
	if s.MaxDepth != nil && (*s.MaxDepth < 0 || *s.MaxDepth > MaxDepth) {
		return &Fault{"max_depth", -1, fmt.Sprintf("%d is not from 0 to %d", *s.MaxDepth, MaxDepth)}
	}
	if s.MaxPages < 0 || s.MaxPages > MaxPages {
		return &Fault{"max_pages", -1, fmt.Sprintf("%d is not from 0 to %d", s.MaxPages, int64(MaxPages))}
	}
	if s.MaxPagesDomain < 0 || s.MaxPagesDomain > MaxPages {
		return &Fault{"max_pages_domain", -1,
			fmt.Sprintf("%d is not from 0 to %d", s.MaxPagesDomain, int64(MaxPages))}
	}
	s.Until = s.Until.UTC()
	return nil
}

// normalList returns the members of a list in their form, sorted, each once.
func normalList(member string, list []string, form func(string) (string, error)) ([]string, error) {
	if len(list) > MaxList {
		return nil, &Fault{member, -1, fmt.Sprintf("it has %d members; at most %d are taken", len(list), MaxList)}
	}
	out := make([]string, 0, len(list))
	for i, text := range list {
		one, err := form(text)
		if err != nil {
			return nil, &Fault{member, i, err.Error()}
		}
		out = append(out, one)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func domainForm(text string) (string, error) {
	if below, ok := strings.CutPrefix(text, "*."); ok {
		return "", fmt.Errorf("%.100q: a domain covers all hosts below it; write %.100q", text, below)
	}
	return hostForm(text)
}

func hostForm(text string) (string, error) {
	host, err := weburl.Host(text)
	if err != nil {
		return "", fmt.Errorf("%.100q is not a host name or IP address, without scheme, port and path", text)
	}
	return strings.TrimSuffix(host, "."), nil
}

func extensionForm(text string) (string, error) {
	ending := strings.ToLower(strings.TrimPrefix(text, "."))
	bad := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/?#", r) }
	if ending == "" || len(ending) > maxEnding || strings.ContainsFunc(ending, bad) {
		return "", fmt.Errorf("%.100q is not an extension such as jpg or tar.gz", text)
	}
	return ending, nil
}

// Text returns the JSON of a scope in normal form.
func (s Scope) Text() []byte {
	text, _ := json.Marshal(s) // strings, numbers and times of four-digit years always can be
	return text
}

// Empty reports whether everything is in scope.
func (s *Scope) Empty() bool {
	return len(s.Domains)+len(s.Hosts)+len(s.SURTs)+len(s.Allow)+len(s.Deny)+len(s.DenyExtensions) == 0 &&
		s.MaxDepth == nil && s.MaxPages == 0 && s.MaxPagesDomain == 0 && s.Until.IsZero()
}
