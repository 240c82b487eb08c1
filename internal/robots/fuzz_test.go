package robots

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"/fish", "/fishheads"}, {"/*.php$", "/a.php"}, {"/a*b*c", "/abcabc"}, {"*.pdf$", "/x.pdf"},
		{"/$", "/"},
		{"/foo?baz=https://foo.bar", "/foo?baz=https%3A%2F%2Ffoo.bar"}, {"/a%2Fb", "/a/b"},
		{"/*%2Fy", "/a?u=%2Fy"},
		{"/*/y", "/a?u=%2Fy"}, {"/%", "/%25"}, {"/a%2", "/a%"}, {"/\xff", "/%ff"}, {"/a**$", "/ab"},
		{"/%2A$", "/*"},
		{"/*a*a*a*a*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"/abcdefghi*", "/abcdefgh"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, target string) {
		if len(pattern) > 100 || len(target) > 100 {
			return
		}
		rules := newRules([]byte(pattern), []line{{size: uint32(len(pattern)), allow: true}}, 0)
		rules.deny = true
		slow := newModelRule(pattern, true)
		if r := ruleOf(rules, 0); r.octets() != slow.octets {
			t.Errorf("pattern %q has %d octets, want %d", pattern, r.octets(), slow.octets)
		}
		got := rules.Allowed([]byte(target))
		model := model{rules: []modelRule{{allow: false}, slow}}
		if want := model.allowed(target); got != want {
			t.Errorf("pattern %q matches %q = %t, want %t", pattern, target, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Robots), v.Agent, targetOf(f, v.URL))
	}
	f.Add([]byte("user-agent:*\ndisallow:/a*\r\rallow:/%61$\x00\n"), "x", "/a?")
	f.Add([]byte("\xff\xfeU\x00:\x00"), "U", "")
	f.Add([]byte("u\u017fer-agent: *\nuser-agent: *\ndi\u017fallow: /a\n"), "x", "/a")
	f.Fuzz(func(t *testing.T, body []byte, agent, target string) {
		if len(body) > 2000 || len(target) > 100 {
			return
		}
		rules := Parse(body, agent)
		if delay := rules.CrawlDelay(); delay < 0 {
			t.Errorf("crawl delay %v", delay)
		}
		got := rules.Allowed([]byte(target))
		if want := newModel(string(asUTF8(body)), agent).allowed(target); got != want {
			t.Errorf("%q for %q: %q allowed = %t, want %t", body, agent, target, got, want)
		}
		checkPrinted(t, rules, target)
	})
}

// asUTF8 converts UTF-16 by the code under test, because the model knows only UTF-8.
func asUTF8(body []byte) []byte {
	if bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff")) {
		return toUTF8(body)
	}
	return body
}

// ruleOf returns the i-th rule; rules without wildcards come first.
func ruleOf(r *Rules, i int) rule {
	if i < len(r.literals) {
		return r.literalRule(i)
	}
	return r.wildRule(i - len(r.literals))
}

// checkPrinted prints rules as a file, parses it, and expects the same verdict.
func checkPrinted(t *testing.T, rules *Rules, target string) {
	t.Helper()
	file := rules.appendFile(nil)
	again := Parse(file, "x")
	allowed, by := rules.Match([]byte(target))
	if gotAllowed, gotBy := again.Match([]byte(target)); gotAllowed != allowed || gotBy != by {
		t.Errorf("%q printed and read again: %q by %q = %t, was by %q = %t", file, target, gotBy,
			gotAllowed, by, allowed)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"/", "", "/a%62%2f%3F?x=%2F%3f/?", "/%", "/%%34%31", "/ツ", "?",
		"/a b\x00\x7f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if len(target) > 1000 {
			return
		}
		for _, open := range []bool{false, true} {
			once := appendTarget(nil, []byte(target), open)
			if twice := appendTarget(nil, once, open); !bytes.Equal(once, twice) {
				t.Errorf("open %t: %q becomes %q, then %q", open, target, once, twice)
			}
			if !isCanonical([]byte(strings.ReplaceAll(string(once), "%", ""))) {
				t.Errorf("open %t: %q becomes %q", open, target, once)
			}
			if want := modelTarget(target, open); string(once) != want {
				t.Errorf("open %t: %q becomes %q, want %q", open, target, once, want)
			}
		}
		if isCanonical([]byte(target)) && string(appendTarget(nil, []byte(target), false)) != target {
			t.Errorf("%q is said to be canonical", target)
		}
	})
}

func modelTarget(target string, open bool) string {
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	symbols := modelSymbols(target)
	if open {
		symbols = modelOpen(symbols)
	}
	return strings.Join(symbols, "")
}

func FuzzDelay(f *testing.F) {
	for _, seed := range []string{"1", "0.5", ",5", "-1", "1e9", "99999999999999999999", "nan", "1.2.3",
		"9223372036.854775807"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		delay := parseDelay([]byte(value))
		if delay < 0 {
			t.Errorf("%q: %v", value, delay)
		}
		if more := parseDelay([]byte("9" + value)); strings.Trim(value, "0123456789") == "" && more < delay {
			t.Errorf("9%s is %v, less than %v", value, more, delay)
		}
		if delay == math.MaxInt64 && len(value) < 10 {
			t.Errorf("%q is for ever", value)
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, seed := range []string{"1", "99999999999999999999", "-1", "Fri, 02 Jan 2026 03:05:05 GMT",
		"Friday, 02-Jan-26 03:04:06 GMT", " 7 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if wait := ParseRetryAfter(value, now); wait < 0 || wait > maxRetryAfter {
			t.Errorf("%q: %v", value, wait)
		}
	})
}

func FuzzLocation(f *testing.F) {
	for _, seed := range []string{"/x", "//h/x", "HTTP://H:80/a b#f", "ftp://x/", "?q", "http://u:p@h/",
		"http://ツ/ツ", "https:\\\\h\\x", "javascript:1", "http://[::1]:8/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, location string) {
		const base = "http://a.test/robots.txt"
		got := resolveLocation(base, location)
		if got == "" {
			return
		}
		if !isWeb(got) || strings.ContainsFunc(got, isNotVisible) || strings.Contains(got, "#") ||
			len(got) > maxLocation {
			t.Errorf("%q leads to %q", location, got)
		}
		if again := resolveLocation(base, got); again != got {
			t.Errorf("%q leads to %q, that to %q", location, got, again)
		}
	})
}
