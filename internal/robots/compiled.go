package robots

import (
	"bytes"
	"cmp"
	"slices"
	"time"
	"unsafe"
)

// literal is a rule without wildcards. Its pattern is text[off:off+size] of the Rules that hold it.
type literal struct {
	off, size uint32
	up        uint32 // 1 + the number of the longest unanchored rule whose pattern is a prefix of this one; 0: none
	allow     bool
	anchored  bool
}

// wild is a rule with wildcards. Its pattern is text[off:off+size] of the Rules that hold it.
type wild struct {
	head      uint64 // the first up to eight octets after the slash; one comparison finds most mismatches
	off, size uint32
	prefix    uint32    // octets before the first wildcard
	grams     [2]uint16 // of which a target must have both
	shift     uint8     // number of low bits of head that do not count
	allow     bool
	anchored  bool
}

const (
	sizeOfRules   = int(unsafe.Sizeof(Rules{}))
	sizeOfLiteral = int(unsafe.Sizeof(literal{}))
	sizeOfWild    = int(unsafe.Sizeof(wild{}))
	sizeOfString  = int(unsafe.Sizeof(""))
)

func (w *wild) octets() int {
	if w.anchored {
		return int(w.size) + 1
	}
	return int(w.size)
}

func (r *Rules) literalRule(i int) rule {
	l := &r.literals[i]
	return rule{pattern: r.text[l.off : l.off+l.size], allow: l.allow, anchored: l.anchored}
}

func (r *Rules) wildRule(i int) rule {
	w := &r.wilds[i]
	return rule{pattern: r.text[w.off : w.off+w.size], allow: w.allow, anchored: w.anchored}
}

// literal returns the rule without wildcards that decides for a canonical target. All matching
// patterns are prefixes of the last pattern that sorts before or at the target; up leads from
// longer to shorter ones.
func (r *Rules) literal(target []byte) (by rule, ok bool) {
	after, end := 0, len(r.literals)
	for after < end {
		middle := int(uint(after+end) / 2)
		if l := &r.literals[middle]; bytes.Compare(r.text[l.off:l.off+l.size], target) > 0 {
			end = middle
		} else {
			after = middle + 1
		}
	}
	if after == 0 {
		return rule{}, false
	}
	nearest := r.literalRule(after - 1)
	if nearest.anchored && len(nearest.pattern) == len(target) && bytes.Equal(nearest.pattern, target) {
		return nearest, true
	}
	shared := sharedPrefix(nearest.pattern, target)
	for n := after; n > 0; n = int(r.literals[n-1].up) {
		if l := &r.literals[n-1]; !l.anchored && int(l.size) <= shared {
			return r.literalRule(n - 1), true
		}
	}
	return rule{}, false
}

// sharedPrefix returns the length of the longest common prefix of a and b.
func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// newRules makes rules of the lines that parse has collected; their patterns are in body. The
// result has no spare memory and does not refer to body.
func newRules(body []byte, lines []line, delay time.Duration) *Rules {
	size := 0
	for _, l := range lines {
		size += int(l.size)
	}
	text := make([]byte, 0, size)
	literals, wilds := make([]rule, 0, len(lines)), []rule(nil)
	for _, l := range lines {
		var r rule
		text, r = compile(text, body[l.off:l.off+l.size], l.allow)
		if bytes.IndexByte(r.pattern, wildcard) < 0 {
			literals = append(literals, r)
		} else {
			wilds = append(wilds, r)
		}
	}
	slices.SortFunc(literals, byOctets)
	slices.SortFunc(wilds, byWeight)
	r := &Rules{delay: delay}
	r.keep(merge(literals), merge(wilds))
	return r
}

// byOctets sorts a pattern before its extensions, and an unanchored pattern before the same pattern
// anchored.
func byOctets(a, b rule) int {
	if c := bytes.Compare(a.pattern, b.pattern); c != 0 || a.anchored == b.anchored {
		return c
	}
	if b.anchored {
		return -1
	}
	return 1
}

// byWeight sorts by number of octets, most first, then rules that allow before rules that disallow.
func byWeight(a, b rule) int {
	if c := cmp.Compare(b.octets(), a.octets()); c != 0 {
		return c
	}
	if a.allow != b.allow {
		if a.allow {
			return -1
		}
		return 1
	}
	return byOctets(a, b)
}

// merge replaces neighbours with the same pattern by one rule, which allows if one of them does.
func merge(rules []rule) []rule {
	kept := rules[:0]
	for _, r := range rules {
		if n := len(kept); n > 0 && byOctets(kept[n-1], r) == 0 {
			kept[n-1].allow = kept[n-1].allow || r.allow
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

func (r *Rules) keep(literals, wilds []rule) {
	size := 0
	for _, from := range [][]rule{literals, wilds} {
		for i := range from {
			size += len(from[i].pattern)
		}
	}
	r.text = make([]byte, 0, size)
	r.literals, r.wilds = make([]literal, len(literals)), make([]wild, len(wilds))
	for i := range literals {
		r.keepLiteral(i, &literals[i])
	}
	for i := range wilds {
		r.keepWild(i, &wilds[i])
	}
}

func (r *Rules) keepLiteral(i int, from *rule) {
	r.literals[i] = literal{off: uint32(len(r.text)), size: uint32(len(from.pattern)), allow: from.allow,
		anchored: from.anchored}
	r.text = append(r.text, from.pattern...)
	// a prefix of this pattern is also a prefix of the pattern before it
	for up := i; up > 0; up = int(r.literals[up-1].up) {
		if l := r.literalRule(up - 1); !l.anchored && bytes.HasPrefix(from.pattern, l.pattern) {
			r.literals[i].up = uint32(up)
			return
		}
	}
}

func (r *Rules) keepWild(i int, from *rule) {
	first := bytes.IndexByte(from.pattern, wildcard)
	r.wilds[i] = wild{
		head: headOf(from.pattern[:first]), shift: uint8(64 - 8*min(max(first-1, 0), 8)),
		grams: gramsOf(from.pattern[first+1:]),
		off:   uint32(len(r.text)), size: uint32(len(from.pattern)), prefix: uint32(first), allow: from.allow,
		anchored: from.anchored,
	}
	r.text = append(r.text, from.pattern...)
}
