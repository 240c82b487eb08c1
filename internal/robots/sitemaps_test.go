package robots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSitemaps(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		want       []string
	}{
		{name: "none", file: "User-agent: *\nDisallow: /x\n"},
		{name: "of no group, wherever they stand",
			file: "Sitemap: http://a.test/1\nUser-agent: other\nSITEMAP:http://a.test/2 # second\nDisallow: /\n" +
				"User-agent: x\nsite-map: https://b.test/3\nsitemap http://a.test/4\nDisallow: /x",
			want: []string{"http://a.test/1", "http://a.test/2", "https://b.test/3", "http://a.test/4"}},
		{name: "each once, serialised", file: "Sitemap: HTTP://A.test:80/ü\nSitemap: http://a.test/%C3%BC\n",
			want: []string{"http://a.test/%C3%BC"}},
		{name: "unusable", file: "Sitemap: /map.xml\nSitemap:\nSitemap: ftp://a.test/\nSitemap: http://a b/\n" +
			"Sitemap: javascript:alert(1)\nSitemap: http://a.test/ http://b.test/\nSitemap: http://\n"},
		{name: "without credentials", file: "Sitemap: http://me:secret@a.test/", want: []string{"http://a.test/"}},
		{name: "after a byte order mark", file: "\xef\xbb\xbfSitemap: http://a.test/",
			want: []string{"http://a.test/"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Parse([]byte(tc.file), "x").Sitemaps(); !slices.Equal(got, tc.want) {
				t.Errorf("%q; want %q", got, tc.want)
			}
		})
	}
}

// A Sitemap line is none of a group's: the agents before and after it are of one group.
func TestSitemapEndsNoGroup(t *testing.T) {
	r := Parse([]byte("User-agent: x\nSitemap: http://a.test/\nUser-agent: y\nDisallow: /\n"), "x")
	if r.Allowed([]byte("/")) {
		t.Error("the rule after the line does not count for the agent before it")
	}
}

func TestSitemapsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for _, tc := range []struct {
		name, line string
		want       int
	}{
		{name: "many", line: "Sitemap: http://a.test/%d\n", want: 100},
		{name: "long", line: "Sitemap: http://a.test/%d" + long + "\n", want: 4},
		{name: "too long", line: "Sitemap: http://a.test/%d" + long + long + long + "\n", want: 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var file strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&file, tc.line, i)
			}
			r := Parse([]byte(file.String()), "x")
			if got := len(r.Sitemaps()); got != tc.want {
				t.Errorf("%d sitemaps; want %d", got, tc.want)
			}
			if r.Size() > 20<<10 || tc.want > 0 && r.Size() == 0 {
				t.Errorf("%d bytes", r.Size())
			}
		})
	}
}

// Sitemaps last as long as the rules of their file. Where only sitemaps are dropped, the file need
// not be fetched again.
func TestEntryHasSitemaps(t *testing.T) {
	policy := Policy{Agent: "x", TTL: time.Hour, ErrorTTL: time.Minute}
	file := "Sitemap: http://a.test/1\n"
	settle := func(e Entry, status int, body string) Entry {
		return policy.Settle(e, time.Minute, Response{Status: status, Body: []byte(body)})
	}
	e := settle(Entry{}, 200, file)
	if got := settle(e, 503, "").Sitemaps(); !slices.Equal(got, []string{"http://a.test/1"}) {
		t.Errorf("after an error: %q; want those of the last file", got)
	}
	if got := settle(e, 404, "").Sitemaps(); got != nil {
		t.Errorf("after 404: %q; want none", got)
	}
	if e = e.WithoutRules(); e.Sitemaps() != nil || e.Rules() == nil || !e.Rules().Allowed([]byte("/x")) {
		t.Errorf("without rules: %q, rules %v; want none, and rules that allow all", e.Sitemaps(), e.Rules())
	}
	e = settle(Entry{}, 200, "User-agent: *\nDisallow: /x\n"+file).WithoutRules()
	if e.Sitemaps() != nil || e.Rules() != nil {
		t.Errorf("of a file with rules, without rules: %q, rules %v; want neither", e.Sitemaps(), e.Rules())
	}
}
