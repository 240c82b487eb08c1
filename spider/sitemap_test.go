package spider

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// sitemapAnswer returns http://a.test/map with a Content-Type.
func sitemapAnswer(t testing.TB, media string, body []byte) answer {
	return answer{url: mustURL(t, "http://a.test/map"), status: 200, body: body,
		header: http.Header{"Content-Type": {media}}}
}

var sitemapFiles = []struct {
	name, media, body string
	want              string
}{
	{name: "urlset", media: "text/xml", want: "http://a.test/1?a=1&b=2 http://b.test/2 http://a.test/3",
		body: `<?xml version="1.0" encoding="UTF-8"?><!-- <url><loc>http://a.test/no</loc></url> -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://x/"><url><loc>
http://a.test/1?a=1&amp;b=2 </loc><lastmod>2026-01-01</lastmod><image:image><image:loc>http://a.test/i</image:loc>
</image:image></url><url><loc><![CDATA[http://b.test/2]]></loc></url><url><loc>http://a.test/1?a=1&amp;b=2</loc></url>
<url><loc>/3</loc></url><url><loc>ftp://a.test/</loc></url><url><loc/></url></urlset>`},
	{name: "index", media: "application/xml", want: "http://a.test/1.xml.gz http://a.test/2.xml",
		body: `<sitemapindex><sitemap><loc>http://a.test/1.xml.gz</loc></sitemap><sitemap>` +
			`<loc>http://a.test/2.xml</loc></sitemap></sitemapindex>`},
	{name: "prefixed, after a byte order mark", media: "application/octet-stream", want: "http://a.test/1",
		body: "\xef\xbb\xbf<s:urlset xmlns:s='x'><s:url><s:loc>http://a.test/1</s:loc></s:url></s:urlset>"},
	{name: "in Latin-1", media: "text/xml", want: "http://a.test/%C3%BC",
		body: "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>http://a.test/\xfc</loc></url></urlset>"},
	{name: "RSS", media: "application/rss+xml", want: "http://a.test/1",
		body: `<rss version="2.0"><channel><link>http://a.test/</link><item><title>x &nbsp; y</title>` +
			`<link>http://a.test/1</link><atom:link href="http://a.test/no"/></item></channel></rss>`},
	{name: "RSS 1.0", media: "text/xml", want: "http://a.test/1",
		body: `<rdf:RDF><channel/><item rdf:about="x"><link>http://a.test/1</link></item></rdf:RDF>`},
	{name: "Atom", media: "application/atom+xml", want: "http://a.test/1 http://a.test/2",
		body: `<feed><link href="http://a.test/no"/><entry><link rel="alternate" href="http://a.test/1"/>` +
			`<link rel="edit" href="http://a.test/no"/></entry><entry><link href="/2"/></entry></feed>`},
	{name: "text", media: "text/plain; charset=utf-8", want: "http://a.test/1 https://a.test/2",
		body: "http://a.test/1\r\n\n https://a.test/2 \nand more:\nhttp://a.test/no\n"},
	{name: "text of no sitemap", media: "text/plain", body: "see http://a.test/1\n"},
	{name: "text of another type", media: "application/json", body: "http://a.test/1\n"},
	{name: "XML of another kind", media: "image/svg+xml", body: "<svg><url><loc>http://a.test/1</loc></url></svg>"},
	{name: "cut", media: "text/xml", want: "http://a.test/1",
		body: "<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://a.test/"},
	{name: "nothing", media: "text/xml"},
	{name: "binary", media: "application/octet-stream", body: "\x1f\x8b\x00\x01\x02"},
}

func TestSitemaps(t *testing.T) {
	for _, c := range sitemapFiles {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.want)
			answers := map[string]answer{"plain": sitemapAnswer(t, c.media, []byte(c.body))}
			packed := gzipped([]byte(c.body))
			answers["sent packed"] = sitemapAnswer(t, c.media, packed)
			answers["sent packed"].header.Set("Content-Encoding", "gzip")
			if !strings.HasSuffix(c.media, "/json") { // the type says nothing about what is in a gzip file
				answers["a gzip file"] = sitemapAnswer(t, "application/gzip", packed)
			}
			for name, a := range answers {
				got := linksOf(a, "testbot")
				if !slices.Equal(got.urls, want) {
					t.Errorf("%s: %q; want %q", name, got.urls, want)
				}
				if got.fault != nil && c.name != "cut" {
					t.Errorf("%s: %v", name, got.fault)
				}
			}
		})
	}
}

// What a sitemap or feed says of the last change of a page goes with its link.
func TestSitemapLastMod(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"urlset", `<urlset><url><loc>/1</loc><lastmod> 2026-01-02
</lastmod></url><url><lastmod>2026-01-02T03:04:05.5+01:00</lastmod><loc>/2</loc></url><url><loc>/3</loc></url>
<url><loc>/4</loc><lastmod>soon</lastmod></url><url><loc>/5</loc><v:video><v:lastmod>2026</v:lastmod></v:video></url>
<url><loc>/6</loc><lastmod>2026-05</lastmod></url><url><loc>/7</loc><lastmod>2026-05-06 07:08:09</lastmod></url></urlset>`,
			"/1 2026-01-02T00:00:00Z,/2 2026-01-02T02:04:05Z,/3 ,/4 ,/5 ," +
				"/6 2026-05-01T00:00:00Z,/7 2026-05-06T07:08:09Z"},
		{"index", `<sitemapindex><sitemap><loc>/1</loc><lastmod>2026-01-02T03:04Z</lastmod></sitemap><sitemap>` +
			`<loc>/2</loc></sitemap></sitemapindex>`, "/1 2026-01-02T03:04:00Z,/2 "},
		{"RSS", `<rss><channel><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate><item><link>/1</link>` +
			`<pubDate>Sat, 7 Sep 2002 00:00:01 +0200</pubDate></item><item><dc:date>2026</dc:date><link>/2</link></item>` +
			`<item><link>/3</link></item></channel></rss>`, "/1 2002-09-06T22:00:01Z,/2 2026-01-01T00:00:00Z,/3 "},
		{"Atom", `<feed><updated>2001</updated><entry><link href="/1"/><published>2025</published>` +
			`<updated>2026-01-02T03:04:05Z</updated></entry><entry><link href="/2"/></entry></feed>`,
			"/1 2026-01-02T03:04:05Z,/2 "},
		{"twice", `<urlset><url><loc>/1</loc><loc>/2</loc><lastmod>2026</lastmod></url><url><loc>/1</loc>` +
			`<lastmod>2027</lastmod></url><url><loc>/2</loc><lastmod>2027</lastmod></url></urlset>`,
			"/1 2027-01-01T00:00:00Z,/2 2026-01-01T00:00:00Z"},
		{"cut", `<urlset><url><loc>/1</loc><lastmod>2026</lastmod></url><url><loc>/2</loc><lastmod>20`,
			"/1 2026-01-01T00:00:00Z,/2 "},
	} {
		found := linksOf(sitemapAnswer(t, "text/xml", []byte(c.body)), "testbot")
		var got []string
		for _, url := range found.urls {
			got = append(got, strings.TrimPrefix(url, "http://a.test")+" "+found.lastMod[url])
		}
		if text := strings.Join(got, ","); text != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, text, c.want)
		}
	}
}

// hostileSitemaps are files whose reading ends early.
func hostileSitemaps() map[string]struct {
	body []byte
	want error
} {
	const page = "<url><loc>http://a.test/1</loc></url>"
	type file = struct {
		body []byte
		want error
	}
	var many bytes.Buffer
	for i := range maxSitemapURLs + 10 {
		fmt.Fprintf(&many, "<url><loc>/%d</loc></url>", i)
	}
	start := "<urlset>" + page
	return map[string]file{
		"bomb of one text": {gzipped([]byte(start + strings.Repeat("x", 2*maxSitemap))), errSitemapToken},
		"bomb of pages":    {gzipped([]byte(start + strings.Repeat("<url></url>\n", maxSitemap/12))), errSitemapLong},
		"bomb in a bomb": {gzipped(gzipped([]byte(start + strings.Repeat("<url></url>\n", maxSitemap/12)))),
			errSitemapLong},
		"entities": {[]byte(`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>` +
			`<urlset>` + page + `<url><loc>&b;</loc></url></urlset>`), errSitemapEntity},
		"deep":      {[]byte(start + strings.Repeat("<a>", 1_000_000)), errSitemapDepth},
		"many URLs": {[]byte(start + many.String()), errSitemapURLs},
	}
}

// Hostile files end with an error, in little memory: of one text that is never in memory as a whole.
func TestHostileSitemaps(t *testing.T) {
	for name, c := range hostileSitemaps() {
		t.Run(name, func(t *testing.T) {
			a := sitemapAnswer(t, "application/xml", c.body)
			if name == "bomb in a bomb" {
				a.header.Set("Content-Encoding", "gzip")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := linksOf(a, "testbot")
			runtime.ReadMemStats(&after)
			if !errors.Is(got.fault, c.want) {
				t.Errorf("ends with %v; want %v", got.fault, c.want)
			}
			if len(got.urls) > maxSitemapURLs {
				t.Errorf("%d links", len(got.urls))
			}
			used := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d links, %d KiB allocated", len(got.urls), used>>10)
			if (name == "bomb of one text" || name == "deep") && used > 16<<20 {
				t.Errorf("%d bytes allocated; want at most 16 MiB", used)
			}
		})
	}
}

// A sitemap that is not read to its end is in the log.
func TestSitemapFaultIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := New(Config{Log: zerolog.New(&log)})
	a := sitemapAnswer(t, "text/xml", []byte(`<!DOCTYPE x [<!ENTITY a "b">]><urlset/>`))
	if err := s.putLinks(t.Context(), a, []byte("1"), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{errSitemapEntity.Error(), `"url":"http://a.test/map"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log says %q; want %q in it", log.String(), want)
		}
	}
}
