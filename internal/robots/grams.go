package robots

import "bytes"

// A pattern with wildcards is compared with a target only if two grams of the pattern, two or three
// consecutive octets each, occur somewhere in the target. One table look-up so rejects nearly all
// patterns of nearly all files.

const (
	gramBits = 13
	noGram   = 1<<16 - 1 // for a pattern without two consecutive literal octets after its prefix
)

// grams is the set of the grams in a target. It may report grams that are not in the target, but
// misses none.
type grams [1 << gramBits / 64]uint64

func hashGram(g uint32) uint16 { return uint16(g * 0x9e3779b1 >> (32 - gramBits)) }

// add adds all grams of the target to the set.
func (s *grams) add(target []byte) {
	var g uint32
	for i, c := range target {
		g = g<<8&0xffffff | uint32(c)
		if i > 0 {
			s.set(hashGram(g & 0xffff))
		}
		if i > 1 {
			s.set(hashGram(g | 1<<24))
		}
	}
}

func (s *grams) set(hash uint16) { s[hash>>6] |= 1 << (hash & 63) }

// hasAll reports whether both hashes may be those of grams in the set.
func (s *grams) hasAll(hashes [2]uint16) bool { return s.has(hashes[0]) && s.has(hashes[1]) }

func (s *grams) has(hash uint16) bool {
	return hash == noGram || s[hash>>6]>>(hash&63)&1 != 0
}

// gramsOf returns two grams of the part of a pattern after the first wildcard: the ends of its two
// longest literal parts or, if there is only one, its beginning and end.
func gramsOf(rest []byte) [2]uint16 {
	var longest, second []byte
	for len(rest) > 0 {
		part, after, _ := bytes.Cut(rest, []byte{wildcard})
		switch {
		case len(part) > len(longest):
			longest, second = part, longest
		case len(part) > len(second):
			second = part
		}
		rest = after
	}
	if len(second) < 2 {
		second = longest[:min(len(longest), 3)]
	}
	return [2]uint16{endGram(longest), endGram(second)}
}

// endGram returns the hash of the last gram of a part.
func endGram(part []byte) uint16 {
	n := len(part)
	switch {
	case n < 2:
		return noGram
	case n == 2:
		return hashGram(uint32(part[0])<<8 | uint32(part[1]))
	}
	return hashGram(uint32(part[n-3])<<16 | uint32(part[n-2])<<8 | uint32(part[n-1]) | 1<<24)
}
