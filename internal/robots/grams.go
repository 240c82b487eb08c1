package robots

import "bytes"

// A target is compared only with the patterns that have wildcards if certain octets of the pattern,
// two grams of two or three in a row each, are somewhere in the target. That rejects nearly all
// patterns of nearly all files at the cost of a look at a table.

const (
	gramBits = 13
	noGram   = 1<<16 - 1 // of a pattern without two literal octets in a row behind its prefix
)

// grams is the set of the grams that are in a target. A gram that is not may seem to be.
type grams [1 << gramBits / 64]uint64

func hashGram(g uint32) uint16 { return uint16(g * 0x9e3779b1 >> (32 - gramBits)) }

// add puts all grams of the target into the set.
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

// gramsOf returns two grams of what follows the first wildcard of a pattern: the ends of its two
// longest literal parts or, where there is one only, its beginning and end.
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

// endGram returns the hash of the gram that a part ends with.
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
