package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const hostileSize = 500 << 10

// hostileFiles are as long as the client reads at most, each of one kind of malice.
func hostileFiles() map[string]string {
	fill := func(unit string) string {
		return "User-agent: *\n" + strings.Repeat(unit, hostileSize/len(unit))
	}
	numbered := strings.Builder{}
	numbered.WriteString("User-agent: *\n")
	for i := 0; numbered.Len() < hostileSize; i++ {
		fmt.Fprintf(&numbered, "Allow:/*a*%x\n", i)
	}
	return map[string]string{
		"one pattern of wildcards":      "User-agent: *\nDisallow: /" + strings.Repeat("*", hostileSize) + "b$",
		"one pattern of wildcard and a": "User-agent: *\nDisallow: /" + strings.Repeat("*a", hostileSize/2) + "b$",
		"many patterns of wildcards":    fill("Disallow: /*a*a*a*a*a*a*a*a*b$\n"),
		"many short rules":              fill("Allow:/\n"),
		"many short wildcards":          fill("Allow:/*ab\n"),
		"many different wildcards":      numbered.String(),
		"one group a line":              fill("User-agent:*\nAllow:/a\n"),
		"only agents":                   fill("User-agent: a\n"),
		"only line ends":                fill("\r\n"),
		"one line":                      fill("a"),
		"one long key":                  fill(" "),
		"percent signs":                 "User-agent: *\nDisallow: /" + strings.Repeat("%", hostileSize),
		"NUL":                           fill("\x00"),
		"a long number":                 "User-agent: *\nCrawl-delay: " + strings.Repeat("9", hostileSize),
	}
}

// The bounds are some twenty times what a slow machine takes; anything but linear is far beyond.
const (
	hostileParse   = 2 * time.Second
	hostileVerdict = time.Second
)

func TestHostileFiles(t *testing.T) {
	targets := []string{"/" + strings.Repeat("a", 8000), "/" + strings.Repeat("%61a", 2000) + "?%2f"}
	for name, file := range hostileFiles() {
		t.Run(name, func(t *testing.T) {
			var rules *Rules
			if took := stopwatch(func() { rules = Parse([]byte(file), "x") }); took > hostileParse {
				t.Errorf("parsed in %v, want %v at most", took, hostileParse)
			}
			if size := cap(rules.text) + 40*cap(rules.rules); size > 10*hostileSize {
				t.Errorf("%d octets are kept of %d", size, len(file))
			}
			for _, target := range targets {
				if took := stopwatch(func() { rules.Allowed([]byte(target)) }); took > hostileVerdict {
					t.Errorf("%.10q: verdict in %v, want %v at most", target, took, hostileVerdict)
				} else {
					t.Logf("%d rules, %.10q: %v", rules.Len(), target, took)
				}
			}
		})
	}
}

// A verdict that costs too much is that nothing may be fetched; the same rules tell what is short.
func TestDearVerdict(t *testing.T) {
	rules := Parse([]byte(hostileFiles()["many different wildcards"]), "x")
	for _, tc := range []struct {
		target  string
		allowed bool
	}{
		{target: "/" + strings.Repeat("b", 8000)},
		{target: "/" + strings.Repeat("b", 100), allowed: true},
		{target: "/robots.txt", allowed: true},
	} {
		if got := rules.Allowed([]byte(tc.target)); got != tc.allowed {
			t.Errorf("%.20q, %d octets: allowed = %t under %d rules, want %t", tc.target, len(tc.target), got, rules.Len(), tc.allowed)
		}
	}
}

func TestManyRules(t *testing.T) {
	file := strings.Builder{}
	file.WriteString("User-agent: *\nDisallow: /\n")
	for i := range 100_000 {
		fmt.Fprintf(&file, "Allow: /page/%d$\n", i)
	}
	rules := Parse([]byte(file.String()), "x")
	if rules.Len() != 100_001 {
		t.Fatalf("%d rules, want 100001", rules.Len())
	}
	for _, tc := range []struct {
		target  string
		allowed bool
	}{
		{target: "/page/0", allowed: true},
		{target: "/page/99999", allowed: true},
		{target: "/page/100000", allowed: false},
	} {
		if got := rules.Allowed([]byte(tc.target)); got != tc.allowed {
			t.Errorf("%s allowed = %t, want %t", tc.target, got, tc.allowed)
		}
	}
}
