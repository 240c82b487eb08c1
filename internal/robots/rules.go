package robots

import (
	"bytes"
	"time"
)

// Rules is what one robots.txt says to one agent. It is immutable and safe for concurrent use.
type Rules struct {
	text     []byte    // the patterns, compiled
	literals []literal // those without wildcards, in the order of their octets
	wilds    []wild    // those with wildcards: the one that decides where several match first
	delay    time.Duration
	deny     bool // nothing is allowed; there are no rules then
}

var (
	allowAll    = &Rules{}
	disallowAll = &Rules{deny: true}
)

// AllowAll returns rules that allow everything.
func AllowAll() *Rules { return allowAll }

// DisallowAll returns rules that allow nothing but /robots.txt.
func DisallowAll() *Rules { return disallowAll }

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

// maxWork bounds the work for a verdict: 2,000 octets under 32,000 rules with wildcards that all
// have to be compared with the whole of them.
const maxWork = 1 << 26

// Allowed reports whether target, the path and query of a URL, may be fetched. It does not
// allocate while the target's canonical form has at most 8 KiB. What would take more than some
// tenths of a second to tell, a long target under tens of thousands of wildcards, may not.
func (r *Rules) Allowed(target []byte) bool {
	allowed, _ := r.verdict(target, maxWork)
	return allowed
}

// AllowedWithin is Allowed with a bound on the work, in octets that are looked at, of which a
// nanosecond is worth about one. known is false where that does not suffice. A target without
// rules with wildcards to compare it with costs nothing.
func (r *Rules) AllowedWithin(target []byte, work int) (allowed, known bool) {
	allowed, v := r.verdict(target, work)
	return allowed, v.work <= work
}

// AllowedAll judges several targets, the first one in any case, and further ones as long as all
// together take about a millisecond. It returns the verdicts on as many as it has judged and the
// work for them, as in [Rules.AllowedWithin].
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

// Match is Allowed with the rule that decided, like "allow: /x"; it is "" when none matched. The
// pattern is shown in canonical form.
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

// CrawlDelay returns the pause the file asks for between two requests, 0 where it asks for none.
// It is never negative; what does not fit is the largest Duration.
func (r *Rules) CrawlDelay() time.Duration { return r.delay }

// Len returns the number of rules. A rule that is in the file twice counts once.
func (r *Rules) Len() int { return len(r.literals) + len(r.wilds) }

// Size returns the memory that the rules take, in bytes: 0 where there are none.
func (r *Rules) Size() int {
	if r.Len() == 0 {
		return 0
	}
	return sizeOfRules + cap(r.text) + sizeOfLiteral*cap(r.literals) + sizeOfWild*cap(r.wilds)
}

// canonicalBuffer is the longest line of the spider's protocol, so no URL that can be sent has a
// longer target, and small enough for a stack.
const canonicalBuffer = 8 << 10

// found is how a verdict came about.
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

// decide finds the rule for a canonical target. A query may say a slash in two ways and a pattern
// that has wildcards does not tell whether it means path or query, so a rule matches when it
// matches either form; open is nil where there is one form only. Where the work is not enough the
// answer is false, and the work in v more than that.
func (r *Rules) decide(closed, open []byte, work int) (allowed bool, v found) {
	if string(closed) == "/robots.txt" { // implicitly allowed (section 2.2.2)
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

// beats reports whether r decides where both match: the one with more octets does, else the one
// that allows.
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

// lookWork is what passing a rule by costs, and gramsAfter how many are looked at before it is
// worth while to gather the target's grams.
const (
	lookWork   = 2
	gramsAfter = 16
)

// first puts the first rule that matches into v, of those that decide where the rule in v matches,
// too. in is for more than gramsAfter rules.
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
