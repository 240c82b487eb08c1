package robots

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// Rules is what one robots.txt says to one agent. It is immutable and safe for concurrent use.
type Rules struct {
	text  []byte // the patterns of rules, compiled
	rules []rule // the one with the most octets first, so that the first to match decides
	delay time.Duration
	deny  bool // nothing is allowed; there are no rules then
}

// AllowAll returns rules that allow everything.
func AllowAll() *Rules { return &Rules{} }

// DisallowAll returns rules that allow nothing but /robots.txt.
func DisallowAll() *Rules { return &Rules{deny: true} }

// ForStatus returns the rules that follow from an answer to a request for robots.txt, when it is
// the only thing known (RFC 9309, section 2.3.1): 2xx has the file in body; 3xx that lead nowhere
// and 4xx allow everything; 429, 5xx and 0, no answer, allow nothing.
func ForStatus(status int, body []byte, agent string) *Rules {
	switch classOf(status) {
	case answered:
		return Parse(body, agent)
	case unavailable:
		return AllowAll()
	}
	return DisallowAll()
}

// Allowed reports whether target, the path and query of a URL, may be fetched. It does not
// allocate while the target's canonical form has at most 8 KiB. What would take milliseconds to tell, a long target under
// thousands of wildcards, may not.
func (r *Rules) Allowed(target []byte) bool {
	allowed, _ := r.verdict(target)
	return allowed
}

// Match is Allowed with the rule that decided, like "allow: /x"; it is "" when none matched. The
// pattern is shown in canonical form.
func (r *Rules) Match(target []byte) (allowed bool, rule string) {
	allowed, by := r.verdict(target)
	if by == nil {
		return allowed, ""
	}
	line := []byte("disallow: ")
	if allowed {
		line = []byte("allow: ")
	}
	return allowed, string(by.appendSource(line, r.pattern(by)))
}

// CrawlDelay returns the pause the file asks for between two requests, 0 where it asks for none.
// It is never negative; what does not fit is the largest Duration.
func (r *Rules) CrawlDelay() time.Duration { return r.delay }

// Len returns the number of rules.
func (r *Rules) Len() int { return len(r.rules) }

// canonicalBuffer is the longest line of the spider's protocol, so no URL that can be sent has a
// longer target, and small enough for a stack.
const canonicalBuffer = 8 << 10

func (r *Rules) verdict(target []byte) (allowed bool, by *rule) {
	if len(r.rules) == 0 && !r.deny {
		return true, nil
	}
	if isCanonical(target) {
		return r.decide(target, nil)
	}
	var buf [canonicalBuffer]byte
	closed := appendTarget(buf[:0], target, false)
	query := bytes.IndexByte(closed, '?')
	if query < 0 || bytes.IndexByte(closed[query:], '%') < 0 {
		return r.decide(closed, nil)
	}
	var openBuf [canonicalBuffer]byte
	return r.decide(closed, appendTarget(openBuf[:0], target, true))
}

// maxWork bounds the octets that a verdict looks at for rules with wildcards: 2,000 octets under 8,000 such rules.
const maxWork = 16 << 20

// decide finds the rule for a canonical target. A query may say a slash in two ways and a pattern
// that has wildcards does not tell whether it means path or query, so a rule matches when it
// matches either form; open is nil where there is one form only.
func (r *Rules) decide(closed, open []byte) (allowed bool, by *rule) {
	if string(closed) == "/robots.txt" { // implicitly allowed (section 2.2.2)
		return true, nil
	}
	head, openHead := headOf(closed), headOf(open)
	work := 0
	for i := range r.rules {
		by := &r.rules[i]
		if by.prefix < by.end-by.off && (head^by.head)>>by.shift == 0 {
			if work += len(closed) + len(open); work > maxWork {
				return false, nil
			}
		}
		if (head^by.head)>>by.shift == 0 && by.match(r.pattern(by), closed) {
			return by.allow, by
		}
		if open != nil && (openHead^by.head)>>by.shift == 0 && by.match(r.pattern(by), open) {
			return by.allow, by
		}
	}
	return !r.deny, nil
}

func (r *Rules) pattern(of *rule) []byte { return r.text[of.off:of.end] }

// newRules compiles lines into rules.
func newRules(lines []line, delay time.Duration) *Rules {
	r := &Rules{delay: delay, rules: make([]rule, 0, len(lines))}
	size := 0
	for _, l := range lines {
		size += len(l.pattern)
	}
	r.text = make([]byte, 0, size)
	for _, l := range lines {
		var compiled rule
		r.text, compiled = compile(r.text, l.pattern, l.allow)
		r.rules = append(r.rules, compiled)
	}
	r.text = bytes.Clone(r.text[:len(r.text):len(r.text)])
	slices.SortFunc(r.rules, compareRules)
	return r
}

// compareRules puts more octets first, then allow, then what came first in the file.
func compareRules(a, b rule) int {
	if a.allow != b.allow && a.octets() == b.octets() {
		if a.allow {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.octets(), a.octets()), cmp.Compare(a.off, b.off))
}
