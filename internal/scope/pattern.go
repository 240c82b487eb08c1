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

	texts []string // of textsOf, until the filter of all patterns is made
	atEnd bool
}

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
	p.texts, p.atEnd = textsOf(tree)
	prog, err := syntax.Compile(tree)
	if err != nil {
		return p, 0, err
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
		// the rune for bytes that are no UTF-8 stands for any of them
		if tree.Flags&syntax.FoldCase == 0 && !slices.Contains(tree.Rune, utf8.RuneError) {
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
		return p.re.Match(url)
	}
	for _, text := range p.needs {
		if bytes.Contains(url, text) {
			return p.re == nil || p.re.Match(url)
		}
	}
	return false
}
