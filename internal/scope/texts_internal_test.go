package scope

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// A short pattern that stands for texts of megabytes is given up before they are made: each bracket
// around them would make them anew.
func TestTextsAreBounded(t *testing.T) {
	tree, err := syntax.Parse("[a-z](?:"+strings.Repeat("xyzw", 100)+"){20}", syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	if set, ok := allTexts(tree.Simplify()); ok {
		t.Errorf("%d texts of %d bytes; want none", len(set), len(set[0]))
	}
}

// Digits and slashes, which most URLs have, do not let a pattern through the filter that has other texts.
func TestFilterHasRareGrams(t *testing.T) {
	left := maxProgram
	list, err := compilePatterns("deny", []string{`/calendar/\d{4}`, `/\d{4}/archive\d{2}`}, &left)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{
		"http://a.test/2026/11/28/page-12345": false,
		"http://a.test/calendar/2026":         true,
		"http://a.test/2026/archive11":        true,
	} {
		if got := list.find([]byte(url)) != 0; got != want {
			t.Errorf("%s may match: %t; want %t", url, got, want)
		}
		if got := list.match([]byte(url)); got != want {
			t.Errorf("%s matches: %t; want %t", url, got, want)
		}
	}
}
