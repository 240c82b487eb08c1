package robots

import (
	"bytes"
	"encoding/binary"
)

// wildcard stands for "*" in a compiled pattern, where "*" itself is the literal that "%2A" wrote.
// No canonical octet is 0.
const wildcard = 0

// rule is one Allow or Disallow line. Its pattern is text[off:end] of the Rules that hold it.
type rule struct {
	head     uint64 // the first up to eight octets after the slash, to tell most mismatches by one comparison
	shift    uint8  // the bits of head that do not count
	allow    bool
	anchored bool // the pattern ended in "$"
	off, end uint32
	prefix   uint32 // octets before the first wildcard
	least    uint32 // octets a target must have to match
}

// octets is what decides between rules that match (RFC 9309, section 2.2.2): the length of the
// pattern in canonical form, with wildcards and "$" counted as written.
func (r *rule) octets() uint32 {
	if r.anchored {
		return r.end - r.off + 1
	}
	return r.end - r.off
}

// compile appends the canonical form of pattern to text and returns the rule for it.
func compile(text, pattern []byte, allow bool) ([]byte, rule) {
	r := rule{allow: allow, off: uint32(len(text))}
	if n := len(pattern); n > 0 && pattern[n-1] == '$' {
		r.anchored = true
		pattern = pattern[:n-1]
	}
	text = appendPattern(text, pattern)
	r.end = uint32(len(text))
	r.measure(text[r.off:])
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

// measure fills in what follows from the compiled pattern.
func (r *rule) measure(pattern []byte) {
	prefix := bytes.IndexByte(pattern, wildcard)
	if prefix < 0 {
		prefix = len(pattern)
	}
	r.prefix = uint32(prefix)
	r.least = uint32(len(pattern) - bytes.Count(pattern, []byte{wildcard}))
	r.head = headOf(pattern[:prefix])
	r.shift = uint8(64 - 8*min(max(prefix-1, 0), 8))
}

// headOf returns the up to eight octets after the first as a number, filled up with zeros.
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

// match reports whether pattern, compiled for r, matches the canonical target: the literal parts,
// each at the first place it fits, in order. Linear in pattern and target.
func (r *rule) match(pattern, target []byte) bool {
	if len(target) < int(r.least) || !bytes.HasPrefix(target, pattern[:r.prefix]) {
		return false
	}
	pattern, target = pattern[r.prefix:], target[r.prefix:]
	if len(pattern) == 0 {
		return !r.anchored || len(target) == 0
	}
	return r.matchRest(pattern[1:], target)
}

// matchRest goes on after the first wildcard.
func (r *rule) matchRest(pattern, target []byte) bool {
	for {
		part, rest, more := bytes.Cut(pattern, []byte{wildcard})
		if !more && r.anchored {
			return bytes.HasSuffix(target, part)
		}
		i := bytes.Index(target, part)
		if i < 0 || !more {
			return i >= 0
		}
		pattern, target = rest, target[i+len(part):]
	}
}

// appendSource appends the pattern as a robots.txt would write it.
func (r *rule) appendSource(dst, pattern []byte) []byte {
	for i, c := range pattern {
		last := i == len(pattern)-1 && !r.anchored
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
