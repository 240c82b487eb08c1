// Package canonical returns the form by which a URL is known if some of its query parameters do not
// count.
package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// Rule names query parameters that do not count on some hosts.
type Rule struct {
	Hosts []string // as in URLs, without a final dot; "*.NAME": all below NAME; "*": all
	Drop  []string // names of parameters, as CheckName takes them; "PREFIX*": all that begin with PREFIX
}

const (
	wildcard = "*"
	maxName  = 200 // bytes
	hashMark = "sha256:"
)

// CheckName says what is wrong with a name in Drop.
func CheckName(name string) error {
	isOdd := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("&=#*", c) }
	switch {
	case name == "" || len(name) > maxName:
		return errors.New("a parameter's name has 1 to 200 bytes")
	case strings.ContainsFunc(strings.TrimSuffix(name, wildcard), isOdd):
		return errors.New(`a parameter's name is printable ASCII without "&", "=" and "#", and has "*" at its end only`)
	}
	return nil
}

// Rules finds what URLs are known by. It does not change, so any number of goroutines may use it.
type Rules struct {
	drops map[string][]*drop // by host pattern
	max   int                // bytes of what a URL is known by
}

// drop is the parameters of a Rule.
type drop struct {
	names    map[string]struct{}
	prefixes []string
}

// New returns Rules that give URLs names of up to max bytes, at least 71. It returns nil if there
// are no rules.
func New(rules []Rule, max int) *Rules {
	if len(rules) == 0 {
		return nil
	}
	r := &Rules{drops: map[string][]*drop{}, max: max}
	for _, rule := range rules {
		d := &drop{names: map[string]struct{}{}}
		for _, name := range rule.Drop {
			if prefix, ok := strings.CutSuffix(name, wildcard); ok {
				d.prefixes = append(d.prefixes, prefix)
			} else {
				d.names[name] = struct{}{}
			}
		}
		for _, host := range rule.Hosts {
			r.drops[host] = append(r.drops[host], d)
		}
	}
	return r
}

// Name returns what a URL with a host is known by: the URL without the parameters that any rule for
// the host drops, or, where that is no UTF-8 or too long, "sha256:" and its SHA-256 in hexadecimal.
// It returns nil if there is no rule for the host. The result may alias url.
func (r *Rules) Name(host, url []byte) []byte {
	var room [8]*drop
	drops := r.of(host, room[:0])
	if len(drops) == 0 {
		return nil
	}
	name := without(url, drops)
	if len(name) > r.max || !utf8.Valid(name) {
		sum := sha256.Sum256(name)
		name = hex.AppendEncode([]byte(hashMark), sum[:])
	}
	return name
}

// of appends what the rules for a host drop.
func (r *Rules) of(host []byte, all []*drop) []*drop {
	host = bytes.TrimSuffix(host, []byte("."))
	if len(host) == 0 {
		return all
	}
	all = append(append(all, r.drops[wildcard]...), r.drops[string(host)]...)
	for {
		dot := bytes.IndexByte(host, '.')
		if dot < 0 {
			return all
		}
		all = append(all, r.drops[wildcard+string(host[dot:])]...)
		host = host[dot+1:]
	}
}

// without returns a URL without the parameters that are dropped. All else stays as it is. A query
// of which nothing remains loses its "?".
func without(url []byte, drops []*drop) []byte {
	end := len(url)
	if hash := bytes.IndexByte(url, '#'); hash >= 0 {
		end = hash
	}
	start := bytes.IndexByte(url[:end], '?')
	if start < 0 {
		return url
	}
	var kept [][]byte
	all := bytes.Split(url[start+1:end], []byte("&"))
	for _, parameter := range all {
		name, _, _ := bytes.Cut(parameter, []byte("="))
		if !slices.ContainsFunc(drops, func(d *drop) bool { return d.has(name) }) {
			kept = append(kept, parameter)
		}
	}
	if len(kept) == len(all) {
		return url
	}
	out := append(make([]byte, 0, len(url)), url[:start]...)
	if query := bytes.Join(kept, []byte("&")); len(query) > 0 {
		out = append(append(out, '?'), query...)
	}
	return append(out, url[end:]...)
}

// has reports whether the parameters with a name are dropped.
func (d *drop) has(name []byte) bool {
	if _, ok := d.names[string(name)]; ok {
		return true
	}
	return slices.ContainsFunc(d.prefixes, func(prefix string) bool {
		return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
	})
}
