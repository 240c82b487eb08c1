package robots

import (
	"bytes"
	"encoding/binary"
)

// wildcard stands for "*" in a compiled pattern. A "*" there is a literal, written as "%2A". No
// canonical octet is 0.
const wildcard = 0

// rule is one Allow or Disallow line.
type rule struct {
	pattern  []byte // compiled: canonical octets and wildcards
	allow    bool
	anchored bool // the pattern ended in "$"
}

// octets returns the number that decides between matching rules (RFC 9309, section 2.2.2): the
// length of the pattern in canonical form, including wildcards and "$".
func (r *rule) octets() int {
	if r.anchored {
		return len(r.pattern) + 1
	}
	return len(r.pattern)
}

// compile appends the canonical form of pattern to text, and returns the rule, whose pattern is
// part of text.
func compile(text, pattern []byte, allow bool) ([]byte, rule) {
	r := rule{allow: allow}
	if n := len(pattern); n > 0 && pattern[n-1] == '$' {
		r.anchored = true
		pattern = pattern[:n-1]
	}
	from := len(text)
	text = appendPattern(text, pattern)
	r.pattern = text[from:len(text):len(text)]
	return text, r
}

func appendPattern(dst, pattern []byte) []byte {
	query := false
	for len(pattern) > 0 {
		c, n := octet(pattern)
		if pattern[0] == '*' {
			dst = append(dst, wildcard)
		} else {
			dst = appendOctet(dst, c, n > 1, query)
		}
		query = query || pattern[0] == '?'
		pattern = pattern[n:]
	}
	return dst
}

// headOf returns the octets 1 to 8 of s as a number, padded with zeros.
func headOf(s []byte) uint64 {
	if len(s) >= 9 {
		return binary.BigEndian.Uint64(s[1:])
	}
	var head [8]byte
	if len(s) > 1 {
		copy(head[:], s[1:])
	}
	return binary.BigEndian.Uint64(head[:])
}

// match reports whether a pattern matches the canonical target. first is the index of its first
// wildcard. The last part of an anchored pattern must be at the target's end; each other part is
// matched at the first possible place, in order. Linear in pattern and target.
func match(pattern []byte, first int, anchored bool, target []byte) bool {
	if !bytes.HasPrefix(target, pattern[:first]) {
		return false
	}
	target, pattern = target[first:], pattern[first+1:]
	if anchored {
		last := bytes.LastIndexByte(pattern, wildcard)
		tail := pattern[last+1:]
		if !bytes.HasSuffix(target, tail) {
			return false
		}
		target, pattern = target[:len(target)-len(tail)], pattern[:max(last, 0)]
	}
	for len(pattern) > 0 {
		part, rest, _ := bytes.Cut(pattern, []byte{wildcard})
		i := bytes.Index(target, part)
		if i < 0 {
			return false
		}
		pattern, target = rest, target[i+len(part):]
	}
	return true
}

// appendSource appends the pattern as in a robots.txt.
func (r *rule) appendSource(dst []byte) []byte {
	for i, c := range r.pattern {
		last := i == len(r.pattern)-1 && !r.anchored
		switch {
		case c == wildcard:
			dst = append(dst, '*')
		case c == '*':
			dst = append(dst, "%2A"...)
		case c == '#':
			dst = append(dst, "%23"...)
		case c == '$' && last:
			dst = append(dst, "%24"...)
		default:
			dst = append(dst, c)
		}
	}
	if r.anchored {
		dst = append(dst, '$')
	}
	return dst
}
