package spider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/protocol"
)

// peerScript prints the pages of each sitemap as JSON.
const peerScript = `
import sys, json, logging
from usp.fetch_parse import SitemapFetcher
logging.disable(logging.CRITICAL)
for url in sys.argv[1:]:
    print(json.dumps(sorted({p.url for p in SitemapFetcher(url=url, recursion_level=0).sitemap().all_pages()})))
`

// peerPython returns a Python that has the parser, or skips the test.
func peerPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("SITEMAP_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import usp").Run(); err != nil {
		t.Skip("ultimate-sitemap-parser is not installed: pip install ultimate-sitemap-parser, " +
			"and name its Python in SITEMAP_PYTHON")
	}
	return python
}

// peerFiles are sitemaps by path. BASE is the URL of their server, without its last slash.
var peerFiles = map[string]string{
	"/urlset.xml": `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
 xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">
<!-- <url><loc>BASE/no</loc></url> -->
<url><loc> BASE/page?a=1&amp;b=2
</loc><lastmod>2026-01-02</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url>
<url><loc><![CDATA[BASE/cdata?x=1&y=2]]></loc><image:image><image:loc>BASE/image.png</image:loc></image:image></url>
<url><loc>BASE/news</loc><news:news><news:publication><news:name>N</news:name><news:language>en</news:language>
</news:publication><news:publication_date>2026-01-02</news:publication_date><news:title>T</news:title></news:news></url>
<url><xhtml:link rel="alternate" hreflang="de" href="BASE/de"/><loc>BASE/en</loc></url>
<url><loc>BASE/en</loc></url><url></url></urlset>`,
	"/prefixed.xml": `<sm:urlset xmlns:sm="http://www.sitemaps.org/schemas/sitemap/0.9"><sm:url><sm:loc>BASE/prefixed</sm:loc>` +
		`</sm:url></sm:urlset>`,
	"/old.xml": `<urlset xmlns="http://www.google.com/schemas/sitemap/0.84"><url><loc>BASE/old</loc></url></urlset>`,
	"/mark.xml": "\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/" +
		"sitemap/0.9'><url><loc>BASE/mark</loc></url></urlset>",
	"/index.xml": `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` +
		`<sitemap><loc>BASE/urlset.xml</loc><lastmod>2026-01-02</lastmod></sitemap><sitemap><loc>BASE/packed.xml.gz</loc>` +
		`</sitemap><sitemap><loc>BASE/list.txt</loc></sitemap><sitemap><loc>BASE/deeper.xml</loc></sitemap></sitemapindex>`,
	"/deeper.xml": `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>BASE/rss.xml</loc>` +
		`</sitemap><sitemap><loc>BASE/index.xml</loc></sitemap><sitemap><loc>BASE/deeper.xml</loc></sitemap></sitemapindex>`,
	"/packed.xml.gz": `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>BASE/packed/1</loc></url>` +
		`<url><loc>BASE/packed/2</loc></url></urlset>`,
	"/list.txt": "BASE/text/1\r\nBASE/text/2\n\n  BASE/text/3  \n",
	"/rss.xml": `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" ` +
		`xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title><link>BASE/</link><description>D</description>` +
		`<atom:link href="BASE/rss.xml" rel="self"/><item><title>One</title><link>BASE/rss/1?a&amp;b</link>` +
		`<guid>BASE/guid</guid><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate></item><item><title>Two</title>` +
		`<link><![CDATA[ BASE/rss/2 ]]></link><dc:date>2026-01-02</dc:date></item></channel></rss>`,
	"/atom.xml": `<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>` +
		`<link href="BASE/"/><entry><title>One</title><link href="BASE/atom/1"/><id>urn:1</id>` +
		`<updated>2026-01-02T03:04:05Z</updated></entry><entry><title>Two</title>` +
		`<link rel="alternate" href="BASE/atom/2"/></entry></feed>`,
}

// TestSameURLsAsSitemapParser reads files of all kinds with PyPI's ultimate-sitemap-parser and with
// the spider, both over HTTP. Both find the same pages.
func TestSameURLsAsSitemapParser(t *testing.T) {
	python := peerPython(t)
	addr, port := web(t, func(w http.ResponseWriter, r *http.Request) {
		text, ok := peerFiles[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		body := []byte(strings.ReplaceAll(text, "BASE", "http://"+r.Host))
		w.Header().Set("Content-Type", "text/xml")
		if strings.HasSuffix(r.URL.Path, ".gz") {
			body = gzipped(body)
			w.Header().Set("Content-Type", "application/gzip")
		} else if strings.HasSuffix(r.URL.Path, ".txt") {
			w.Header().Set("Content-Type", "text/plain")
		}
		w.Write(body)
	})
	base := fmt.Sprintf("http://%s:%d", addr, port)
	f := newTestFetcher(t)
	var pages func(url string, seen map[string]bool) []string
	pages = func(url string, seen map[string]bool) (all []string) {
		if _, isFile := peerFiles[strings.TrimPrefix(url, base)]; !isFile {
			return []string{url}
		}
		if seen[url] { // an index knows each URL once
			return nil
		}
		seen[url] = true
		a, err := f.get(t.Context(), mustURL(t, "%s", url), addr)
		if err != nil {
			t.Fatal(err)
		}
		found := linksOf(a, "testbot")
		if a.free(); found.fault != nil {
			t.Errorf("%s: %v", url, found.fault)
		}
		for _, link := range found.urls {
			all = append(all, pages(link, seen)...)
		}
		return all
	}
	for path := range peerFiles {
		text, err := exec.CommandContext(t.Context(), python, "-c", peerScript, base+path).Output()
		var want []string
		if err == nil {
			err = json.Unmarshal(text, &want)
		}
		if err != nil || len(want) == 0 {
			t.Errorf("%s: the parser says %s, %v", path, text, err)
		}
		got := pages(base+path, map[string]bool{})
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q; the parser finds %q", path, got, want)
		}
	}
}

// Hostile sitemaps that come over TCP end with a word in the log, in bounded memory, and the document
// with its status.
func TestHostileSitemapsOverTCP(t *testing.T) {
	const most = 128 << 20 // bytes of heap for one; 50 MiB are read, unpacked
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	files := hostileSitemaps()
	addr, port := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		name := r.URL.Query().Get("file")
		switch name {
		case "endless":
			io.WriteString(w, "<urlset><url><loc>/1</loc></url>")
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, strings.Repeat("<url></url>\n", 1000))
			}
		case "a million indexes":
			io.WriteString(w, "<sitemapindex>")
			for i := range 1_000_000 {
				fmt.Fprintf(w, "<sitemap><loc>/?n=%d</loc></sitemap>", i)
			}
		case "bomb in a bomb":
			w.Header().Set("Content-Encoding", "gzip")
			fallthrough
		default:
			w.Write(files[name].body)
		}
	})
	want := map[string]string{"endless": errSitemapBody.Error(), "a million indexes": errSitemapURLs.Error()}
	for name, file := range files {
		want[name] = file.want.Error()
	}
	for name, word := range want {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "bomb in a bomb" || name == "bomb of pages") {
				t.Skip("long to parse: not over TCP in a short run")
			}
			var log bytes.Buffer
			s := New(Config{UserAgent: "testbot/1.0", Log: zerolog.New(&log)})
			url := fmt.Sprintf("http://%s:%d/?file=%s", addr, port, strings.ReplaceAll(name, " ", "+"))
			d := protocol.Fetch{DocID: []byte("1"), Addr: addr, URL: []byte(url)}
			peak := peakHeap()
			got, err := s.visit(t.Context(), d, time.Now(), nil, newStallWatch(time.Hour, func(error) {}))
			used := peak()
			if err != nil || got.status != 200 {
				t.Errorf("%+v, %v; want 200", got, err)
			}
			if !strings.Contains(log.String(), word) {
				t.Errorf("the log says %q; want %q in it", log.String(), word)
			}
			if t.Logf("%d MiB of heap", used>>20); used > most {
				t.Errorf("%d bytes of heap; want at most %d", used, most)
			}
		})
	}
}

// peakHeap measures the heap until used is called. used returns by how much it grew at most, as seen
// every millisecond.
func peakHeap() (used func() int64) {
	runtime.GC()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	start, end, peak := heap(), make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for tick := time.NewTicker(time.Millisecond); ; {
			most = max(most, heap()-start)
			select {
			case <-tick.C:
			case <-end:
				tick.Stop()
				peak <- most
				return
			}
		}
	}()
	return func() int64 {
		close(end)
		return <-peak
	}
}
