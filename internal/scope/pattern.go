package scope

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// pattern is a compiled RE2 pattern with a filter before it: most URLs lack a text that the pattern
// needs, and looking for a text is much cheaper than matching.
type pattern struct {
	needs [][]byte       // a match contains one of them; nil: it may contain anything
	re    *regexp.Regexp // nil: a URL with one of needs is a match

	texts []string // of textsOf; nil: too many, or none
	atEnd bool
}

// maxSearched bounds the texts that are searched for before a pattern is matched.
const maxSearched = 4

// maxNeeds bounds the texts of a pattern's filter. With more of them it saves nothing.
const maxNeeds = 8

func patternForm(text string) (string, error) {
	if len(text) > maxPattern {
		return "", fmt.Errorf("the pattern has %d bytes; at most %d are taken", len(text), maxPattern)
	}
	if text == "" {
		return "", fmt.Errorf("the pattern is empty; it would match every URL")
	}
	_, err := syntax.Parse(text, syntax.Perl)
	return text, err
}

// newPattern compiles a pattern that patternForm has accepted. size is the number of its
// instructions.
func newPattern(text string) (p pattern, size int, err error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return p, 0, err
	}
	needed := needs(tree)
	for _, one := range needed {
		p.needs = append(p.needs, []byte(one))
	}
	if tree.Op == syntax.OpLiteral && len(needed) == 1 {
		p.texts = []string{foldedText(needed[0])}
		return p, 1, nil
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil {
		return p, 0, err
	}
	if len(prog.Inst) <= maxProgram { // or else the caller refuses it
		p.texts, p.atEnd = textsOf(tree)
	}
	if p.re, err = regexp.Compile(text); err != nil {
		return p, 0, err
	}
	return p, len(prog.Inst), nil
}

// needs returns texts of which each match contains one; nil: nothing is known.
func needs(tree *syntax.Regexp) (list []string) {
	switch tree.Op {
	case syntax.OpLiteral:
		// the rune for bytes that are no UTF-8 stands for any of them, and half a surrogate pair for nothing
		strange := func(r rune) bool { return r == utf8.RuneError || !utf8.ValidRune(r) }
		if tree.Flags&syntax.FoldCase == 0 && !slices.ContainsFunc(tree.Rune, strange) {
			return []string{string(tree.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return needs(tree.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			// of equally long texts the last one: "/" and "?" begin more patterns than they end
			if one := needs(sub); len(one) > 0 && shortest(one) >= shortest(list) {
				list = one
			}
		}
	case syntax.OpAlternate:
		for _, sub := range tree.Sub {
			one := needs(sub)
			if list = append(list, one...); one == nil || len(list) > maxNeeds {
				return nil
			}
		}
	}
	return list
}

// shortest returns the length of the shortest text, which says how good a filter is; 0 for none.
func shortest(list []string) (n int) {
	for i, text := range list {
		if i == 0 || len(text) < n {
			n = len(text)
		}
	}
	return n
}

func (p *pattern) matches(url []byte) bool {
	if p.needs == nil {
		return p.mayMatch(url) && p.re.Match(url)
	}
	for _, text := range p.needs {
		if bytes.Contains(url, text) {
			return p.re == nil || p.mayMatch(url) && p.re.Match(url)
		}
	}
	return false
}

// mayMatch reports whether a URL has one of the texts.
func (p *pattern) mayMatch(url []byte) bool {
	if len(p.texts) == 0 {
		return true
	}
	for _, text := range p.texts {
		from := url
		if p.atEnd {
			from = url[max(0, len(url)-len(text)):]
		}
		if containsFolded(from, text) {
			return true
		}
	}
	return false
}

// containsFolded reports whether a text is in a URL. The text is folded.
func containsFolded(url []byte, text string) bool {
	first := text[0]
	alone := folded[first] == first && first != '0' && (first < 'a' || first > 'z') // nothing else is folded to it
	for len(url) >= len(text) {
		if alone {
			at := bytes.IndexByte(url, first)
			if at < 0 || len(url)-at < len(text) {
				return false
			}
			url = url[at:]
		}
		if folded[url[0]] == first && hasFolded(url[1:], text[1:]) {
			return true
		}
		url = url[1:]
	}
	return false
}

// hasFolded reports whether a text begins with another, which is folded and not longer.
func hasFolded(text []byte, start string) bool {
	for i := range len(start) {
		if folded[text[i]] != start[i] {
			return false
		}
	}
	return true
}
