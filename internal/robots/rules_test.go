package robots

import (
	"strings"
	"testing"
)

func TestMatchNamesTheRule(t *testing.T) {
	const file = "User-agent: *\nDisallow: /\nAllow: /a\nDisallow: /a/*.pdf$\nAllow: /tie*\nDisallow: " +
		"/tie/\nAllow: /tie/\n"
	for _, tc := range []struct {
		name    string
		target  string
		allowed bool
		rule    string
	}{
		{name: "shortest", target: "/x", allowed: false, rule: "disallow: /"},
		{name: "longer", target: "/ab", allowed: true, rule: "allow: /a"},
		{name: "longest", target: "/a/b.pdf", allowed: false, rule: "disallow: /a/*.pdf$"},
		{name: "tie goes to allow, the first of them", target: "/tie/x", allowed: true, rule: "allow: /tie*"},
		{name: "robots.txt is implicitly allowed", target: "/robots.txt", allowed: true, rule: ""},
		{name: "robots.txt encoded", target: "/robots%2etxt", allowed: true, rule: ""},
		{name: "robots.txt with a query is another", target: "/robots.txt?x", allowed: false,
			rule: "disallow: /"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			allowed, rule := Parse([]byte(file), "x").Match([]byte(tc.target))
			if allowed != tc.allowed || rule != tc.rule {
				t.Errorf("%s: %t by %q; want %t by %q", tc.target, allowed, rule, tc.allowed, tc.rule)
			}
		})
	}
}

func TestForStatus(t *testing.T) {
	const file = "User-agent: *\nDisallow: /a\n"
	for _, tc := range []struct {
		name     string
		statuses []int
		a, b     bool // whether /a and /b are allowed
	}{
		{name: "read", statuses: []int{200, 203, 206, 299}, a: false, b: true},
		{name: "all", statuses: []int{300, 301, 304, 310, 400, 401, 403, 404, 410, 451, 499},
			a: true, b: true},
		{name: "nothing", statuses: []int{-1, 0, 100, 199, 429, 500, 503, 599, 600, 999}, a: false, b: false},
	} {
		for _, status := range tc.statuses {
			rules := ForStatus(status, []byte(file), "x")
			if a, b := rules.Allowed([]byte("/a")), rules.Allowed([]byte("/b")); a != tc.a || b != tc.b {
				t.Errorf("%s: %d: /a %t, /b %t; want %t, %t", tc.name, status, a, b, tc.a, tc.b)
			}
			if !rules.Allowed([]byte("/robots.txt")) {
				t.Errorf("%s: %d: /robots.txt is forbidden", tc.name, status)
			}
		}
	}
}

func TestAllowedDoesNotAllocate(t *testing.T) {
	rules := Parse([]byte("User-agent: *\nDisallow: /*b*c$\nAllow: /a?x=/y\n"), "x")
	for _, target := range []string{"/abc", "/%61?x=%2fy", "/ツ" + strings.Repeat("%62/", 2000)} {
		raw := []byte(target)
		if n := testing.AllocsPerRun(100, func() { rules.Allowed(raw) }); n != 0 {
			t.Errorf("%.40q: %v allocations", target, n)
		}
	}
}

// A target longer than the buffer on the stack may allocate, and gets the right verdict.
func TestLongTarget(t *testing.T) {
	rules := Parse([]byte("User-agent: *\nDisallow: /*%62end$\n"), "x")
	long := "/%61?" + strings.Repeat("%2f", canonicalBuffer) + "b"
	if rules.Allowed([]byte(long + "%65nd")) {
		t.Error("the end of a long target does not match")
	}
	if !rules.Allowed([]byte(long)) {
		t.Error("a long target matches without the end")
	}
}

func TestRulesDoNotAliasTheBody(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /a\n")
	rules := Parse(body, "x")
	clear(body)
	if rules.Allowed([]byte("/a")) {
		t.Error("the rules change with the body they were read from")
	}
}
