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
