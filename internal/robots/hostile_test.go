package robots

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const hostileSize = 500 << 10

// hostileFiles returns files of the greatest length that the client reads, each with one kind of
// attack.
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
		"one pattern of wildcards": "User-agent: *\nDisallow: /" +
			strings.Repeat("*", hostileSize) + "b$",
		"one pattern of wildcard and a": "User-agent: *\nDisallow: /" +
			strings.Repeat("*a", hostileSize/2) + "b$",
		"many patterns of wildcards": fill("Disallow: /*a*a*a*a*a*a*a*a*b$\n"),
		"many short rules":           fill("Allow:/\n"),
		"many short wildcards":       fill("Allow:/*ab\n"),
		"many different wildcards":   numbered.String(),
		"one group a line":           fill("User-agent:*\nAllow:/a\n"),
		"only agents":                fill("User-agent: a\n"),
		"only line ends":             fill("\r\n"),
		"one line":                   fill("a"),
		"one long key":               fill(" "),
		"percent signs":              "User-agent: *\nDisallow: /" + strings.Repeat("%", hostileSize),
		"NUL":                        fill("\x00"),
		"a long number":              "User-agent: *\nCrawl-delay: " + strings.Repeat("9", hostileSize),
	}
}

// The bounds are about twenty times the time of a slow machine; code that is not linear takes far
// longer.
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
			if size := rules.Size(); size > 4*len(file) {
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

// dearFile returns a file with many different wildcard rules. Each must be compared with any target
// of the letters a and b, since such a target has all its grams.
func dearFile(size int) []byte {
	file := []byte("User-agent: *\n")
	for i := 1 << 20; len(file) < size; i++ {
		file = append(file, "Allow: /*c*"...)
		for bit := range 20 {
			file = append(file, 'a'+byte(i>>bit&1))
		}
		file = append(file, '\n')
	}
	return file
}

// dearTarget returns a target with all grams of two letters.
func dearTarget(n int) []byte { return []byte("/" + strings.Repeat("aaababbb", n/8+1)[:n]) }

// If a verdict takes too long, it is that the target may not be fetched. Short targets get the
// right verdict by the same rules.
func TestDearVerdict(t *testing.T) {
	rules := Parse(dearFile(2*hostileSize), "x")
	for _, tc := range []struct {
		target  string
		allowed bool
	}{
		{target: string(dearTarget(8000))},
		{target: string(dearTarget(1000)), allowed: true},
		{target: "/robots.txt", allowed: true},
	} {
		if got := rules.Allowed([]byte(tc.target)); got != tc.allowed {
			t.Errorf("%.20q, %d octets: allowed = %t under %d rules, want %t", tc.target, len(tc.target),
				got, rules.Len(), tc.allowed)
		}
	}
}

// A bound on the work bounds the time. A verdict within the bound equals the one without it.
func TestAllowedWithin(t *testing.T) {
	rules := Parse(dearFile(hostileSize), "x")
	for _, n := range []int{1, 10, 100, 2000, 8000} {
		target := dearTarget(n)
		for _, work := range []int{0, 1 << 14, 1 << 20, maxWork} {
			var allowed, known bool
			took := stopwatch(func() { allowed, known = rules.AllowedWithin(target, work) })
			if known && allowed != rules.Allowed(target) {
				t.Errorf("%d octets, work %d: allowed = %t", n, work, allowed)
			}
			if most := 20 * time.Duration(work+4*n+1000); took > most {
				t.Errorf("%d octets, work %d: took %v, want %v at most", n, work, took, most)
			}
			if want := work == maxWork && n < 8000; want && !known || n >= 100 && work <= 1<<14 && known {
				t.Errorf("%d octets, work %d: known = %t", n, work, known)
			}
		}
	}
	if _, known := Parse([]byte("User-agent: *\nDisallow: /a\n"), "x").
		AllowedWithin([]byte("/abc"), 0); !known {
		t.Error("a verdict without wildcards is not known at once")
	}
}

// TestAllowedAll: the first target is judged however long it takes, the others within bounds.
func TestAllowedAll(t *testing.T) {
	rules := Parse(append(dearFile(hostileSize), "Disallow: /c\n"...), "x")
	dear, cheap := dearTarget(2000), []byte("/c")
	if allowed, work := rules.AllowedAll([][]byte{cheap, dear, cheap, dear}); len(allowed) < 2 ||
		len(allowed) == 4 || allowed[0] || !allowed[1] {
		t.Errorf("verdicts %t for %d", allowed, work)
	}
	if allowed, _ := rules.AllowedAll([][]byte{dear, cheap}); len(allowed) != 1 || !allowed[0] {
		t.Errorf("verdicts %t, want one: true", allowed)
	}
}

// A file that repeats itself takes no more memory than one without repetitions.
func TestRepeatedRulesAreKeptOnce(t *testing.T) {
	for _, rule := range []string{"Disallow: /a\n", "Allow: /*a$\n", "Disallow: /\nAllow: /\n"} {
		once := Parse([]byte("User-agent: *\n"+rule), "x")
		often := Parse([]byte("User-agent: *\n"+strings.Repeat(rule, 1000)), "x")
		if once.Size() != often.Size() || once.Size() == 0 {
			t.Errorf("%q: once takes %d bytes, a thousand times %d", rule, once.Size(), often.Size())
		}
	}
}

// Only what is said to the agent is kept.
func TestOnlyOwnGroupIsKept(t *testing.T) {
	others := "User-agent: other\n" + strings.Repeat("Disallow: /a\nDisallow: /*b\n", 10)
	own := Parse([]byte(others+"User-agent: x\nDisallow: /c\nUser-agent: *\nDisallow: /d\n"+others), "x")
	if own.Len() != 1 || own.Allowed([]byte("/c")) || !own.Allowed([]byte("/d")) {
		t.Errorf("%d rules are kept, want the one for x", own.Len())
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
