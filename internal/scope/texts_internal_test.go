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
