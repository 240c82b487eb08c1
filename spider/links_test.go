package spider

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// htmlAnswer returns a page of http://a.test/dir/page?q.
func htmlAnswer(t testing.TB, body string, header ...string) answer {
	a := answer{url: mustURL(t, "http://a.test/dir/page?q"), status: 200, body: []byte(body),
		header: http.Header{"Content-Type": {"text/html"}}}
	for i := 0; i < len(header); i += 2 {
		a.header.Add(header[i], header[i+1])
	}
	return a
}

// Each testdata/links/X.html, as UTF-8, has the links listed in X.txt.
func TestLinksGolden(t *testing.T) {
	pages, err := filepath.Glob("testdata/links/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, path := range pages {
		t.Run(filepath.Base(path), func(t *testing.T) {
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(path, "html") + "txt")
			if err != nil {
				t.Fatal(err)
			}
			a := htmlAnswer(t, string(page))
			a.header.Set("Content-Type", "text/html; charset=utf-8")
			got := strings.Join(linksOf(a, "testbot").urls, "\n") + "\n"
			if got != string(want) {
				t.Errorf("links are\n%swant\n%s", got, want)
			}
		})
	}
}

// pagesWithLinks are answers of http://a.test/dir/, and the links in them.
var pagesWithLinks = []struct {
	name   string
	status int // 0: 200
	header []string
	body   string
	want   string // paths under http://a.test, or URLs
}{
	{name: "nothing"},
	{name: "text", body: "no links here"},
	{name: "base", body: `<base href="http://b.test/x/"><a href=y>`, want: "http://b.test/x/y"},
	{name: "relative base", body: `<base href="/x/"><a href=y>`, want: "/x/y"},
	{name: "base behind the link", body: `<a href=y><base href="/x/">`, want: "/x/y"},
	{name: "the first base counts",
		body: `<base target=_top><base href="/x/"><base href="/z/"><a href=y>`, want: "/x/y"},
	{name: "base that is none", body: `<base href="http://["><a href=y>`, want: "/dir/y"},
	{name: "base of another kind",
		body: `<base href="data:text/plain,x"><a href=y><a href="/z"><a href="http://a.test/w">`,
		want: "/dir/y /z /w"},
	{name: "meta nofollow", body: `<meta name=robots content="index, NoFollow"><a href=y>`},
	{name: "meta none", body: `<meta name=ROBOTS content=none><a href=y>`},
	{name: "meta behind the link", body: `<a href=y><meta name=robots content=nofollow>`},
	{name: "meta for us", body: `<meta name=TestBot content=nofollow><a href=y>`},
	{name: "meta for another", body: `<meta name=otherbot content=nofollow><a href=y>`, want: "/dir/y"},
	{name: "meta noindex", body: `<meta name=robots content="noindex, nofollower"><a href=y>`,
		want: "/dir/y"},
	{name: "X-Robots-Tag", header: []string{"X-Robots-Tag", "noarchive, nofollow"}, body: `<a href=y>`},
	{name: "X-Robots-Tag, second", header: []string{"X-Robots-Tag", "noarchive", "X-Robots-Tag",
		"none"}, body: `<a href=y>`},
	{name: "redirect", status: 301, header: []string{"Location", "../there#part"}, body: `<a href=y>`,
		want: "/there"},
	{name: "redirect of a page without links", status: 302,
		header: []string{"Location", "http://b.test", "X-Robots-Tag", "none"}, want: "http://b.test/"},
	{name: "redirect to nowhere", status: 302, header: []string{"Location", "http://["}},
	{name: "redirect to another scheme", status: 302, header: []string{"Location", "file:///etc/passwd"}},
	{name: "redirect without a target", status: 302},
	{name: "Location of a success", header: []string{"Location", "/created"}},
	{name: "error page", status: 404, body: `<a href=y>`},
	{name: "plain text", header: []string{"Content-Type", "text/plain"}, body: `<a href=y>`},
	{name: "odd type", header: []string{"Content-Type", "TEXT/HTML; charset=\""}, body: `<a href=y>`,
		want: "/dir/y"},
	{name: "no type, HTML", header: []string{"Content-Type", ""}, body: ` <!doctype html><a href=y>`,
		want: "/dir/y"},
	{name: "no type, no HTML", header: []string{"Content-Type", ""}, body: `%PDF-1.4 <a href=y>`},
	{name: "gzip", header: []string{"Content-Encoding", "gzip"},
		body: string(gzipped([]byte(`<a href=y>`))), want: "/dir/y"},
	{name: "unknown coding", header: []string{"Content-Encoding", "br"}, body: `<a href=y>`},
	{name: "Latin 1 by header", header: []string{"Content-Type", "text/html; charset=iso-8859-1"},
		body: "<a href=/\xfc>", want: "/%C3%BC"},
	{name: "Cyrillic by meta", body: "<meta charset=windows-1251><a href=/\xe4>", want: "/%D0%B4"},
	{name: "UTF-16", header: []string{"Content-Type", "text/html; charset=utf-16le"},
		body: "<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00y\x00>\x00", want: "/dir/y"},
	{name: "XHTML", header: []string{"Content-Type", "application/xhtml+xml"},
		body: `<html><script src="x"/><title/><a href="y"/></html>`, want: "/dir/y"},
	{name: "HTML has no empty script", body: `<script src="x"/><a href="y"></script><a href=z>`,
		want: "/dir/z"},
	{name: "frames", body: `<frameset><frame src=f1><frame src=/f2></frameset>`, want: "/dir/f1 /f2"},
	{name: "refresh",
		body: `<meta http-equiv=refresh content="0;url=/x y"><meta http-equiv=refresh content=5>`,
		want: "/x%20y"},
	{name: "NUL", body: "<a href=/x\x00y>", want: "/x%EF%BF%BDy"},
	{name: "longest that a line can hold",
		body: "<a href=/" + strings.Repeat("x", protocol.MaxURL-len("http://a.test/")) + ">",
		want: "/" + strings.Repeat("x", protocol.MaxURL-len("http://a.test/"))},
	{name: "longer", body: "<a href=/" + strings.Repeat("x", protocol.MaxURL-len("http://a.test/")+1) + ">"},
	{name: "much longer", body: "<a href=/" + strings.Repeat("x", 1<<20) + "><a href=y>", want: "/dir/y"},
}

func TestLinks(t *testing.T) {
	for _, c := range pagesWithLinks {
		t.Run(c.name, func(t *testing.T) {
			a := htmlAnswer(t, c.body)
			for i := 0; i < len(c.header); i += 2 {
				if c.header[i] == "Content-Type" {
					a.header.Del("Content-Type")
				}
				a.header.Add(c.header[i], c.header[i+1])
			}
			if c.status != 0 {
				a.status = c.status
			}
			var want []string
			for w := range strings.FieldsSeq(c.want) {
				if w[0] == '/' {
					w = "http://a.test" + w
				}
				want = append(want, w)
			}
			if got := linksOf(a, "testbot").urls; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("links are %.200q; want %.200q", got, want)
			}
		})
	}
}

// The links of a page take at most maxLinkBytes. The others are counted.
func TestLinksAreBounded(t *testing.T) {
	var page bytes.Buffer
	fmt.Fprintf(&page, "<base href=http://b.test/%s/>", strings.Repeat("x", 7000))
	for i := range 100_000 {
		fmt.Fprintf(&page, "<a href=%d>", i)
	}
	got := linksOf(htmlAnswer(t, page.String()), "testbot")
	size := 0
	for _, u := range got.urls {
		size += len(u)
	}
	if size > maxLinkBytes || size < maxLinkBytes*9/10 || len(got.urls)+got.dropped != 100_000 {
		t.Errorf("%d links of %d bytes, %d dropped", len(got.urls), size, got.dropped)
	}
}

func TestHeaderNoFollow(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		want   bool
	}{
		{name: "none there"},
		{name: "nofollow", values: []string{"nofollow"}, want: true},
		{name: "none", values: []string{" NONE "}, want: true},
		{name: "among others", values: []string{"noindex,nofollow , noarchive"}, want: true},
		{name: "second line", values: []string{"noindex", "nofollow"}, want: true},
		{name: "other rules", values: []string{"noindex, nosnippet"}},
		{name: "for us", values: []string{"TestBot: nofollow"}, want: true},
		{name: "for us, second rule", values: []string{"testbot: noindex, nofollow"}, want: true},
		{name: "for another", values: []string{"otherbot: noindex, nofollow"}},
		{name: "for another, then us", values: []string{"otherbot: noindex, testbot: nofollow"}, want: true},
		{name: "for us, then another", values: []string{"testbot: noindex, otherbot: nofollow"}},
		{name: "for another, then a line for all", values: []string{"otherbot: none", "nofollow"},
			want: true},
		{name: "rule with a value", values: []string{"max-snippet: 20, nofollow"}, want: true},
		{name: "date", values: []string{"unavailable_after: Sunday, 25 Jun 2010 15:00:00 PST, nofollow"},
			want: true},
		{name: "date, for another",
			values: []string{"otherbot: unavailable_after: 2010-06-25T15:00:00, nofollow"}},
		{name: "empty", values: []string{"", ",", ":"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := headerNoFollow(c.values, "testbot"); got != c.want {
				t.Errorf("headerNoFollow(%q) = %v; want %v", c.values, got, c.want)
			}
		})
	}
}

func TestRefreshTarget(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{name: "reload", content: "30"},
		{name: "plain", content: "5;url=/x", want: "/x"},
		{name: "comma, space, case", content: " 0 , URL = /x ", want: "/x"},
		{name: "single quotes", content: "0; url='/x y' z", want: "/x y"},
		{name: "double quotes, open", content: `0; url="/x`, want: "/x"},
		{name: "equals signs", content: "0; url=/x?a=b", want: "/x?a=b"},
		{name: "no url", content: "0; /x=y"},
		{name: "empty", content: "0; url="},
		{name: "empty quotes", content: "0; url=''"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := refreshTarget(c.content); got != c.want {
				t.Errorf("refreshTarget(%q) = %q; want %q", c.content, got, c.want)
			}
		})
	}
}

// FuzzLinks: for any page, each link fits a line of the protocol, is a normalised URL, appears
// once, and all are within bounds.
func FuzzLinks(f *testing.F) {
	pages, _ := filepath.Glob("testdata/links/*.html")
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(page, "text/html; charset=utf-8", "noindex", "/x")
		f.Add(gzipped(page), "application/xhtml+xml", "other: nofollow", "//b.test\\@c.test/")
	}
	f.Add([]byte("<base href=//b.test:80><a href='http:x'><a href='http://a\x00b/'>"), "", "",
		"http://ä.test/ü?ü#ü")
	f.Fuzz(func(t *testing.T, body []byte, contentType, robots, location string) {
		for _, status := range []int{200, 301} {
			for _, coding := range []string{"", "gzip"} {
				a := htmlAnswer(t, string(body), "X-Robots-Tag", robots, "Location", location,
					"Content-Encoding", coding)
				a.status = status
				a.header.Set("Content-Type", contentType)
				checkLinks(t, linksOf(a, "testbot").urls)
			}
		}
	})
}

func checkLinks(t *testing.T, urls []string) {
	t.Helper()
	seen := make(map[string]bool)
	for _, link := range urls {
		if !strings.HasPrefix(link, "http://") && !strings.HasPrefix(link, "https://") {
			t.Errorf("%q is neither http nor https", link)
		}
		if !protocol.ValidURL([]byte(link)) || strings.Contains(link, "#") {
			t.Errorf("%q does not fit a line", link)
		}
		if u, err := weburl.Parse([]byte(link)); err != nil || string(u.Text()) != link {
			t.Errorf("%q is not in its final form: %q, %v", link, u.Text(), err)
		}
		if seen[link] {
			t.Errorf("%q twice", link)
		}
		seen[link] = true
	}
}

func BenchmarkLinks(b *testing.B) {
	page, err := os.ReadFile("testdata/links/everything.html")
	if err != nil {
		b.Fatal(err)
	}
	a := htmlAnswer(b, strings.Repeat(string(page), 10))
	b.SetBytes(int64(len(a.body)))
	b.ReportAllocs()
	for b.Loop() {
		linksOf(a, "testbot")
	}
}
