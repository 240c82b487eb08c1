package urlserver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ruleRow = regexp.MustCompile(`(?m)^\| [^|]+ \| (.*: .*) \|$`)
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// TestRuleTable looks up each name that docs/design/architecture.md gives for a rule in the package
// that stands before it: a file, a type or a method.
func TestRuleTable(t *testing.T) {
	text, err := os.ReadFile("docs/design/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Where a rule is in the code")
	table, _, _ = strings.Cut(table, "\n## ")
	found := 0
	for _, row := range ruleRow.FindAllStringSubmatch(table, -1) {
		folder := "."
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			if info, err := os.Stat(m[1]); err == nil && info.IsDir() {
				folder = m[1]
				continue
			}
			if found++; !declared(t, folder, m[1]) {
				t.Errorf("%s has no %s", folder, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("the table names %d files, types and methods; want at least 20", found)
	}
}

// declared reports whether a package has a file, a type, or a method written as Type.Method. A type
// of another package is written as package.Type.
func declared(t *testing.T, folder, name string) bool {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
		return true
	}
	owner, method, isMethod := strings.Cut(name, ".")
	want := `(?m)^(type |\t)` + regexp.QuoteMeta(owner) + ` (struct|interface|u?int)`
	switch _, err := os.Stat(owner); {
	case isMethod && err == nil:
		return declared(t, owner, method)
	case isMethod:
		want = `(?m)^func \(\w+ \*?` + regexp.QuoteMeta(owner) + `\) ` + regexp.QuoteMeta(method) + `\(`
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(want).Match(text) {
			return true
		}
	}
	return false
}
