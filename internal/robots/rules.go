package robots

import (
	"bytes"
	"time"
)

// Rules are the rules of one robots.txt for one agent. Immutable and safe for concurrent use.
type Rules struct {
	text     []byte    // the patterns, compiled
	literals []literal // rules without wildcards, sorted by their octets
	wilds    []wild    // rules with wildcards; of two that match, the first one decides
	sitemaps []string
	delay    time.Duration
	deny     bool // nothing is allowed, and there are no rules
}

var (
	allowAll    = &Rules{}
	disallowAll = &Rules{deny: true}
)

// AllowAll returns rules that allow everything.
func AllowAll() *Rules { return allowAll }

// DisallowAll returns rules that allow nothing but /robots.txt.
func DisallowAll() *Rules { return disallowAll }

// ForStatus returns the rules for an answer to a request for robots.txt if nothing else is known
// (RFC 9309, section 2.3.1): for 2xx the rules of the file in body; 3xx without a usable target and
// 4xx allow everything; 429, 5xx and 0, which is no answer, allow nothing.
func ForStatus(status int, body []byte, agent string) *Rules {
	switch classOf(status) {
	case answered:
		return Parse(body, agent)
	case unavailable:
		return AllowAll()
	}
	return DisallowAll()
}

// maxWork bounds the work for a verdict. It suffices for 2,000 octets under 32,000 rules with
// wildcards that must all be compared with the whole target.
const maxWork = 1 << 26

// Allowed reports whether target, the path and query of a URL, may be fetched. It does not allocate
// if the target's canonical form has at most 8 KiB. A verdict that would take more than some tenths
// of a second (a long target and tens of thousands of wildcards) is false.
func (r *Rules) Allowed(target []byte) bool {
	allowed, _ := r.verdict(target, maxWork)
	return allowed
}

// AllowedWithin is Allowed with a bound on the work: the number of octets to be compared, about a
// nanosecond each. known is false if the bound does not suffice. A target that no rule with
// wildcards needs to be compared with costs nothing.
func (r *Rules) AllowedWithin(target []byte, work int) (allowed, known bool) {
	allowed, v := r.verdict(target, work)
	return allowed, v.work <= work
}

// AllowedAll judges the first target, and further ones as long as all together take about a
// millisecond. It returns the verdicts, and the work for them as in [Rules.AllowedWithin].
func (r *Rules) AllowedAll(targets [][]byte) (allowed []bool, work int) {
	const enough = 1 << 20
	for _, target := range targets {
		if work > enough {
			break
		}
		ok, v := r.verdict(target, maxWork)
		allowed, work = append(allowed, ok), work+v.work
	}
	return allowed, work
}

// Match is Allowed, and also returns the rule that decided, like "allow: /x"; "" if none matched.
// The pattern is in canonical form.
func (r *Rules) Match(target []byte) (allowed bool, rule string) {
	allowed, v := r.verdict(target, maxWork)
	if !v.found {
		return allowed, ""
	}
	line := []byte("disallow: ")
	if allowed {
		line = []byte("allow: ")
	}
	return allowed, string(v.by.appendSource(line))
}

// CrawlDelay returns the pause between two requests that the file asks for, 0 if it asks for none.
// It is never negative; a value that is too large becomes the largest Duration.
func (r *Rules) CrawlDelay() time.Duration { return r.delay }

// Len returns the number of rules. A rule that is in the file twice counts once.
func (r *Rules) Len() int { return len(r.literals) + len(r.wilds) }

// Size returns the memory of the rules and sitemaps in bytes; 0 if there are none.
func (r *Rules) Size() int {
	if r.Len() == 0 && len(r.sitemaps) == 0 {
		return 0
	}
	size := sizeOfRules + cap(r.text) + sizeOfLiteral*cap(r.literals) + sizeOfWild*cap(r.wilds)
	for _, url := range r.sitemaps {
		size += sizeOfString + len(url)
	}
	return size
}

// canonicalBuffer is the length of the longest line of the line protocol, so no URL that can be
// sent has a longer target. It is small enough for the stack.
const canonicalBuffer = 8 << 10

// found is a verdict and how it was found.
type found struct {
	by    rule
	found bool // by is the rule that decided
	work  int
}

func (r *Rules) verdict(target []byte, work int) (allowed bool, v found) {
	if r.Len() == 0 && !r.deny {
		return true, v
	}
	if isCanonical(target) {
		return r.decide(target, nil, work)
	}
	var buf [canonicalBuffer]byte
	closed := appendTarget(buf[:0], target, false)
	query := bytes.IndexByte(closed, '?')
	if query < 0 || bytes.IndexByte(closed[query:], '%') < 0 {
		return r.decide(closed, nil, work)
	}
	var openBuf [canonicalBuffer]byte
	return r.decide(closed, appendTarget(openBuf[:0], target, true), work)
}

// decide finds the rule for a canonical target. A query may contain a slash in two forms, and a
// pattern with wildcards does not say whether its slash is in path or query. So a rule matches if
// it matches either form; open is nil if both are the same. If work does not suffice, allowed is
// false, and the work in v is larger than it.
func (r *Rules) decide(closed, open []byte, work int) (allowed bool, v found) {
	if string(closed) == "/robots.txt" { // always allowed (section 2.2.2)
		return true, v
	}
	v.by, v.found = r.literal(closed)
	if open != nil {
		if by, ok := r.literal(open); ok && (!v.found || by.beats(&v.by)) {
			v.by, v.found = by, true
		}
	}
	s := search{closed: closed, open: open, work: work, spent: lookWork * len(r.wilds)}
	switch {
	case s.spent == 0 || s.spent > work:
	case len(r.wilds) <= gramsAfter:
		s.first(r, &v, nil)
	default:
		s.first(r, &v, new(grams))
	}
	v.work = s.spent
	switch {
	case v.work > work:
		return false, found{work: v.work}
	case v.found:
		return v.by.allow, v
	}
	return !r.deny, v
}

// beats reports whether r decides if both match: the rule with more octets does, else the one that
// allows.
func (r *rule) beats(other *rule) bool {
	if a, b := r.octets(), other.octets(); a != b {
		return a > b
	}
	return r.allow && !other.allow
}

// search compares one target with the rules that have wildcards.
type search struct {
	closed, open []byte
	work, spent  int
}

// lookWork is the cost of skipping a rule. gramsAfter is the number of rules from which it pays to
// collect the target's grams.
const (
	lookWork   = 2
	gramsAfter = 16
)

// first puts the first matching rule into v, among the rules that beat the one in v. in is used if
// there are more than gramsAfter rules.
func (s *search) first(r *Rules, v *found, in *grams) {
	least := 0
	if v.found {
		least = v.by.octets()
	}
	head, openHead := headOf(s.closed), headOf(s.open)
	for i := range r.wilds {
		w := &r.wilds[i]
		if n := w.octets(); n < least || n == least && v.found && v.by.allow && !w.allow {
			break
		}
		if i >= gramsAfter {
			if i == gramsAfter {
				in.add(s.closed)
				in.add(s.open)
				s.spent += 2 * (len(s.closed) + len(s.open))
			}
			if !in.hasAll(w.grams) {
				continue
			}
		}
		near, openNear := (head^w.head)>>w.shift == 0, s.open != nil && (openHead^w.head)>>w.shift == 0
		if !near && !openNear {
			continue
		}
		if s.spent += len(s.closed) + len(s.open); s.spent > s.work {
			break
		}
		pattern := r.text[w.off : w.off+w.size]
		if near && match(pattern, int(w.prefix), w.anchored, s.closed) || openNear &&
			match(pattern, int(w.prefix), w.anchored, s.open) {
			v.by, v.found = r.wildRule(i), true
			return
		}
	}
}
