package scope

import (
	"fmt"
	"math/bits"
)

// patterns is a list of patterns behind one filter: a single pass over a URL finds which of them may
// match it, so that ten patterns cost hardly more than one.
//
// The filter knows three bytes of each text that a pattern needs. It is a table by a hash of three
// bytes: a bit for each group of patterns that need them. A URL without these three bytes anywhere
// cannot match.
type patterns struct {
	list   []pattern
	filter *[filterSize]uint8 // nil: it can exclude none
	groups [8][]uint16        // numbers of the patterns of each bit
	always []uint16           // numbers of the patterns that the filter cannot exclude
}

const (
	filterBits = 12
	filterSize = 1 << filterBits
	gramLen    = 3
)

func gram(a, b, c byte) uint32 {
	return (uint32(a)<<16 | uint32(b)<<8 | uint32(c)) * 0x9E3779B1 >> (32 - filterBits)
}

// compilePatterns compiles the patterns of a member. left is how many instructions they may have.
func compilePatterns(member string, list []string, left *int) (out patterns, err error) {
	for i, text := range list {
		p, size, err := newPattern(text)
		if err != nil {
			return out, &Fault{member, i, err.Error()}
		}
		if *left -= size; *left < 0 {
			return out, &Fault{member, i, fmt.Sprintf("the patterns of the scope are too complex from here on; "+
				"all together may have %d instructions", maxProgram)}
		}
		out.add(p)
	}
	return out, nil
}

func (f *patterns) add(p pattern) {
	n := uint16(len(f.list))
	f.list = append(f.list, p)
	if p.needs == nil || shortestOf(p.needs) < gramLen {
		f.always = append(f.always, n)
		return
	}
	if f.filter == nil {
		f.filter = new([filterSize]uint8)
	}
	group := n % 8
	f.groups[group] = append(f.groups[group], n)
	for _, text := range p.needs {
		end := text[len(text)-gramLen:] // "/" begins more patterns than it ends
		f.filter[gram(end[0], end[1], end[2])] |= 1 << group
	}
}

// match reports whether any of the patterns matches a URL.
func (f *patterns) match(url []byte) bool {
	for _, n := range f.always {
		if f.list[n].matches(url) {
			return true
		}
	}
	if f.filter == nil {
		return false
	}
	found := uint8(0)
	for i := gramLen - 1; i < len(url); i++ {
		found |= f.filter[gram(url[i-2], url[i-1], url[i])]
	}
	for ; found != 0; found &= found - 1 {
		for _, n := range f.groups[bits.TrailingZeros8(found)] {
			if f.list[n].matches(url) {
				return true
			}
		}
	}
	return false
}
