package robots

import "testing"

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		name    string
		pattern string
		hits    []string
		misses  []string
	}{
		{name: "root", pattern: "/", hits: []string{"/", "/a", "", "?q"}},
		{name: "root only", pattern: "/$", hits: []string{"/", ""}, misses: []string{"/a", "/?"}},
		{name: "prefix", pattern: "/fish", hits: []string{"/fish", "/fish.html", "/fish?id=1"},
			misses: []string{"/Fish", "/cat/fish", "/fis"}},
		{name: "prefix longer than a word", pattern: "/abcdefghijkl", hits: []string{"/abcdefghijklm"},
			misses: []string{"/abcdefghijk", "/abcdefghijkx"}},
		{name: "wildcard at the end", pattern: "/fish*", hits: []string{"/fish", "/fishy"},
			misses: []string{"/fis"}},
		{name: "several wildcards", pattern: "/a**b***", hits: []string{"/ab", "/axxbyy"},
			misses: []string{"/a", "/b"}},
		{name: "wildcard over slashes and queries", pattern: "/*.php",
			hits: []string{"/a/b.php5", "/a?b=c.php"}, misses: []string{"/a.PHP"}},
		{name: "anchored", pattern: "/*.php$", hits: []string{"/a.php", "/a.php.php"},
			misses: []string{"/a.php?x", "/a.phpx"}},
		{name: "anchored after a wildcard", pattern: "/a*$", hits: []string{"/a", "/ab"},
			misses: []string{"/b"}},
		{name: "parts do not overlap", pattern: "/*aba*aba$", hits: []string{"/abaaba", "/abaxaba"},
			misses: []string{"/ababa", "/aba"}},
		{name: "the last part is the last place", pattern: "/*a$", hits: []string{"/aba"},
			misses: []string{"/ab"}},
		{name: "dollar in the middle", pattern: "/a$b", hits: []string{"/a$bc", "/a%24b"},
			misses: []string{"/a", "/ab"}},
		{name: "two dollars", pattern: "/a$$", hits: []string{"/a$"}, misses: []string{"/a", "/a$b"}},
		{name: "literal wildcard", pattern: "/a%2Ab", hits: []string{"/a*b", "/a%2ab"},
			misses: []string{"/axb", "/ab"}},
		{name: "literal dollar at the end", pattern: "/a%24", hits: []string{"/a$", "/a$b"},
			misses: []string{"/a"}},
		{name: "wildcard first", pattern: "*/b", hits: []string{"/b", "/a/b"}, misses: []string{"/a"}},
		{name: "anything", pattern: "*", hits: []string{"/", "/a"}},
		{name: "encoded slash in a path", pattern: "/a%2Fb", hits: []string{"/a%2fb"},
			misses: []string{"/a/b"}},
		{name: "slash in a query", pattern: "/a?u=/b", hits: []string{"/a?u=/b", "/a?u=%2Fb"},
			misses: []string{"/a%3Fu=/b"}},
		{name: "encoded slash in a query", pattern: "/a?u=%2Fb", hits: []string{"/a?u=/b", "/a?u=%2fb"}},
		{name: "slash after a wildcard", pattern: "/*/b", hits: []string{"/a/b", "/a?u=/b", "/a?u=%2Fb"},
			misses: []string{"/a%2Fb"}},
		{name: "encoded slash after a wildcard", pattern: "/*%2Fb", hits: []string{"/a%2Fb", "/a?u=%2Fb"},
			misses: []string{"/a/b"}},
		{name: "space", pattern: "/a b", hits: []string{"/a%20b", "/a b"}, misses: []string{"/a+b"}},
		{name: "NUL", pattern: "/a\x00b", hits: []string{"/a%00b"}, misses: []string{"/ab", "/axb"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rules := newRules([]byte(tc.pattern), []line{{size: uint32(len(tc.pattern))}}, 0)
			for _, target := range tc.hits {
				if rules.Allowed([]byte(target)) {
					t.Errorf("%q does not match %q", tc.pattern, target)
				}
			}
			for _, target := range tc.misses {
				if !rules.Allowed([]byte(target)) {
					t.Errorf("%q matches %q", tc.pattern, target)
				}
			}
		})
	}
}

func TestSource(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		want    string // "": same as the pattern
	}{
		{pattern: "/x"},
		{pattern: "/a**b*$"},
		{pattern: "/a$b%2Ac"},
		{pattern: "/a%24"},
		{pattern: "/a%24$", want: "/a$$"},
		{pattern: "/a%23b"},
		{pattern: "/%62/ツ", want: "/b/%E3%83%84"},
	} {
		_, r := compile(nil, []byte(tc.pattern), false)
		if tc.want == "" {
			tc.want = tc.pattern
		}
		if got := string(r.appendSource(nil)); got != tc.want {
			t.Errorf("%q is shown as %q, want %q", tc.pattern, got, tc.want)
		}
	}
}
