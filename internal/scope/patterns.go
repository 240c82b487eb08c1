package scope

import (
	"fmt"
	"math/bits"
	"strings"
)

// patterns is a list of patterns behind one filter: a single pass over a URL finds which of them may
// match it, so that ten patterns cost hardly more than one.
//
// The filter knows groups of three bytes, called grams, of texts of which each match of a pattern
// contains one. It is a table by a hash of a gram: a bit for each group of patterns. A pass looks at
// every step-th gram. A text is long enough that one of its last grams is looked at, wherever in the URL
// it stands, and the filter knows step grams of each.
type patterns struct {
	list   []pattern
	filter *[filterSize]uint16 // nil: it can exclude none
	step   int
	atEnd  bool         // the filter knows grams that end a URL
	groups [16][]uint16 // numbers of the patterns of each bit
	always []uint16     // numbers of the patterns that the filter cannot exclude
}

const (
	filterBits = 12
	filterSize = 1 << filterBits
	gramLen    = 3
	maxStep    = 4
	endSalt    = 0x9A5 // keeps grams that end a URL apart from others
)

// gram returns the place of a gram in the filter. The text has at least gramLen bytes.
func gram(end []byte) uint32 {
	return (uint32(folded[end[0]])<<16 | uint32(folded[end[1]])<<8 | uint32(folded[end[2]])) * 0x9E3779B1 >>
		(32 - filterBits)
}

// compilePatterns compiles the patterns of a member. left is how many instructions they may have.
func compilePatterns(member string, list []string, left *int) (out patterns, err error) {
	out.step = maxStep
	for i, text := range list {
		p, size, err := newPattern(text)
		if err != nil {
			return out, &Fault{member, i, err.Error()}
		}
		if *left -= size; *left < 0 {
			return out, &Fault{member, i, fmt.Sprintf("the patterns of the scope are too complex from here on; "+
				"all together may have %d instructions", maxProgram)}
		}
		out.list = append(out.list, p)
		if n := shortest(p.texts); n >= gramLen && !p.atEnd {
			out.step = min(out.step, n-gramLen+1)
		}
	}
	for n := range out.list {
		out.place(uint16(n))
	}
	return out, nil
}

// place puts a pattern behind the filter, if the filter can exclude it.
func (f *patterns) place(n uint16) {
	p := &f.list[n]
	if shortest(p.texts) < gramLen {
		p.texts = nil
		f.always = append(f.always, n)
		return
	}
	if f.filter == nil {
		f.filter = new([filterSize]uint16)
	}
	group := n % 16
	f.groups[group] = append(f.groups[group], n)
	for _, text := range p.texts {
		end := []byte(text)[len(text)-gramLen:]
		if p.atEnd {
			f.atEnd = true
			f.filter[gram(end)^endSalt] |= 1 << group
			continue
		}
		part := []byte(f.rarest(text))
		for i := range f.step {
			f.filter[gram(part[i:])] |= 1 << group
		}
	}
	if len(p.texts) > maxSearched {
		p.texts = nil
	}
}

// rarest returns the part of a text of which the filter has the grams: just long enough that a pass
// looks at one of them. Most URLs have digits and slashes, so it has few of them. Of equally good
// parts it is the last.
func (f *patterns) rarest(text string) string {
	size := f.step + gramLen - 1
	best, least := "", size+1
	for from := len(text) - size; from >= 0; from-- {
		part := text[from : from+size]
		if n := strings.Count(part, "0") + strings.Count(part, "/"); n < least { // folded: all digits
			best, least = part, n
		}
	}
	return best
}

// match reports whether any of the patterns matches a URL.
func (f *patterns) match(url []byte) bool {
	for _, n := range f.always {
		if f.list[n].matches(url) {
			return true
		}
	}
	for found := f.find(url); found != 0; found &= found - 1 {
		for _, n := range f.groups[bits.TrailingZeros16(found)] {
			if f.list[n].matches(url) {
				return true
			}
		}
	}
	return false
}

// find returns the groups of patterns that may match a URL, of those behind the filter.
func (f *patterns) find(url []byte) (found uint16) {
	if f.filter == nil || len(url) < gramLen {
		return 0
	}
	if f.atEnd {
		found = f.filter[gram(url[len(url)-gramLen:])^endSalt]
	}
	for i := 0; i <= len(url)-gramLen; i += f.step {
		found |= f.filter[gram(url[i:])]
	}
	return found
}
