package scope

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Bounds of the texts that a pattern's filter has. With more of them it saves nothing.
const (
	maxTexts     = 64
	maxTextBytes = 4096 // of all texts together: a short pattern may stand for very long ones
	longText     = 16   // bytes; a longer text filters no better
	maxStarts    = 64   // parts of a concatenation from which texts are made
)

// folded is a byte as the filter knows it: letters in lower case, and one digit for all.
var folded = func() (of [256]byte) {
	for c := range of {
		switch of[c] = byte(c); {
		case 'A' <= c && c <= 'Z':
			of[c] = byte(c) + 'a' - 'A'
		case '0' <= c && c <= '9':
			of[c] = '0'
		}
	}
	return of
}()

// textsOf returns folded texts of which each match contains one; nil: none is known. atEnd: each
// match ends with one, at the end of the URL. tree is simplified.
func textsOf(tree *syntax.Regexp) (texts []string, atEnd bool) {
	for tree.Op == syntax.OpCapture {
		tree = tree.Sub[0]
	}
	if last := len(tree.Sub) - 1; tree.Op == syntax.OpConcat && tree.Sub[last].Op == syntax.OpEndText {
		set := []string{""}
		for i := last - 1; i >= 0 && shortest(set) < gramLen; i-- {
			part, ok := allTexts(tree.Sub[i])
			if ok {
				part, ok = product(part, set)
			}
			if !ok {
				break
			}
			set = part
		}
		if shortest(set) >= gramLen {
			return set, true
		}
	}
	return someTexts(tree), false
}

// someTexts returns folded texts of which each match contains one; nil: none is known.
func someTexts(tree *syntax.Regexp) (best []string) {
	if set, ok := allTexts(tree); ok && shortest(set) > 0 {
		return set
	}
	switch tree.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return someTexts(tree.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range tree.Sub {
			one := someTexts(sub)
			if best = append(best, one...); one == nil || len(best) > maxTexts {
				return nil
			}
		}
	case syntax.OpConcat:
		best = someOfParts(tree.Sub)
	}
	return best
}

// someOfParts returns the best texts of the parts of a concatenation: of one part, or of neighbours
// together.
func someOfParts(parts []*syntax.Regexp) (best []string) {
	parts = parts[:min(len(parts), maxStarts)]
	sets := make([][]string, len(parts)) // nil: not known
	for i, part := range parts {
		set, ok := allTexts(part)
		if !ok {
			best = better(best, someTexts(part))
			continue
		}
		sets[i] = set
	}
	for start := range sets {
		run := []string{""}
		for _, set := range sets[start:] {
			var ok bool
			if run, ok = product(run, set); !ok || set == nil {
				break
			}
			if best = better(best, run); shortest(run) >= longText {
				break
			}
		}
	}
	return best
}

// better returns the texts that make the better filter: the longer ones, or of equally long ones
// the fewer.
func better(a, b []string) []string {
	x, y := min(shortest(a), maxStep+gramLen-1), min(shortest(b), maxStep+gramLen-1)
	if x > y || x == y && len(a) > 0 && len(a) <= len(b) {
		return a
	}
	return b
}

// allTexts returns all texts, folded, that a tree matches. ok is false if there are too many of them.
func allTexts(tree *syntax.Regexp) (set []string, ok bool) {
	switch tree.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, true
	case syntax.OpLiteral:
		return literalTexts(tree)
	case syntax.OpCharClass:
		return classTexts(tree.Rune)
	case syntax.OpCapture:
		return allTexts(tree.Sub[0])
	case syntax.OpQuest:
		set, ok = allTexts(tree.Sub[0])
		return unique(append(set, "")), ok
	case syntax.OpAlternate:
		for _, sub := range tree.Sub {
			one, ok := allTexts(sub)
			if set = append(set, one...); !ok || len(set) > maxTexts {
				return nil, false
			}
		}
		return unique(set), true
	case syntax.OpConcat:
		set = []string{""}
		for _, sub := range tree.Sub {
			one, ok := allTexts(sub)
			if ok {
				set, ok = product(set, one)
			}
			if !ok {
				return nil, false
			}
		}
		return set, true
	}
	return nil, false
}

// literalTexts returns the texts of a literal: several if letters of either case are the same, and one
// of them is beyond ASCII.
func literalTexts(tree *syntax.Regexp) (set []string, ok bool) {
	set = []string{""}
	for _, r := range tree.Rune {
		class := []rune{r, r}
		if tree.Flags&syntax.FoldCase != 0 {
			for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
				class = append(class, other, other)
			}
		}
		one, ok := classTexts(class)
		if ok {
			set, ok = product(set, one)
		}
		if !ok {
			return nil, false
		}
	}
	return set, true
}

// classTexts returns the runes of a class, which is given by its ranges. The rune for bytes that are
// no UTF-8 stands for any of them.
func classTexts(ranges []rune) (set []string, ok bool) {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 2*maxTexts {
			return nil, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if r == utf8.RuneError {
				return nil, false
			}
			set = append(set, foldedText(string(r)))
		}
		if set = unique(set); len(set) > maxTexts {
			return nil, false
		}
	}
	return set, true
}

func foldedText(text string) string {
	of := []byte(text)
	for i, c := range of {
		of[i] = folded[c]
	}
	return string(of)
}

// product returns each of a followed by each of b. ok is false if these are too many or too long.
func product(a, b []string) (set []string, ok bool) {
	if len(a)*len(b) > maxTexts {
		return nil, false
	}
	size := 0
	for _, first := range a {
		for _, second := range b {
			if size += len(first) + len(second); size > maxTextBytes {
				return nil, false
			}
			set = append(set, first+second)
		}
	}
	return unique(set), true
}

func unique(set []string) []string {
	slices.Sort(set)
	return slices.Compact(set)
}
