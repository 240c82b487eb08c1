package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/spider"
)

// mirror is some folders on loopback, each a host of its own, which note what is asked.
type mirror struct {
	hosts []string // "127.0.0.2:PORT"

	mu    sync.Mutex // guards asked
	asked map[string]map[string]int
}

// startMirror serves folders. All hosts have one port.
func startMirror(t *testing.T, folders ...string) *mirror {
	t.Helper()
	m := &mirror{asked: map[string]map[string]int{}}
	for try := 0; len(m.hosts) < len(folders); try++ {
		port := "0"
		if n := len(m.hosts); n > 0 {
			_, port, _ = net.SplitHostPort(m.hosts[0])
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%s", len(m.hosts)+2, port))
		if err != nil {
			t.Fatalf("try %d: %v", try, err)
		}
		dir := os.DirFS(folders[len(m.hosts)])
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.note(r)
			serveFile(w, r, dir)
		})}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		m.hosts = append(m.hosts, l.Addr().String())
	}
	return m
}

// serveFile serves a file without a redirect: the target of a redirect is one link deeper for the
// daemon, and not for Scrapy.
func serveFile(w http.ResponseWriter, r *http.Request, dir fs.FS) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	text, err := fs.ReadFile(dir, name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(text))
}

func (m *mirror) note(r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	if m.asked[agent] == nil {
		m.asked[agent] = map[string]int{}
	}
	m.asked[agent]["http://"+r.Host+r.URL.RequestURI()]++
}

// pages returns what a program has asked.
func (m *mirror) pages(agent string) (urls []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for url := range m.asked[agent] {
		urls = append(urls, url)
	}
	slices.Sort(urls)
	return urls
}

// folder writes a site: pages by their paths, each with its links.
func folder(t *testing.T, pages map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, links := range pages {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "<!doctype html><title>x</title>"
		for _, link := range links {
			text += fmt.Sprintf("<a href=%q>x</a>\n", link)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// referenceSpider runs the reference spider at a daemon, until the test ends. It puts links on its
// connection.
func referenceSpider(t *testing.T, d *daemon) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	s := spider.New(spider.Config{Index: "-", UserAgent: "reference/1"})
	ended := make(chan error, 1)
	go func() { ended <- s.Dial(ctx, d.spiders) }()
	t.Cleanup(func() {
		end()
		<-ended
		s.Close()
	})
}

// crawlCounts are the counts of /api/crawls/{crawl}.
type crawlCounts struct {
	Stopped    bool
	Scheduled  int
	InTransit  int `json:"in_transit"`
	Completed  int
	OutOfScope int `json:"out_of_scope"`
	Rules      map[string]int
}

// crawled waits until a crawl has ended some documents and has none left.
func crawled(t *testing.T, d *daemon, crawl string, least int) (n crawlCounts) {
	t.Helper()
	return awaitCrawl(t, d, crawl, func(n crawlCounts) bool {
		return n.Completed >= least && n.Scheduled+n.InTransit == 0
	})
}

// awaitCrawl waits until the counts of a crawl are as wanted.
func awaitCrawl(t *testing.T, d *daemon, crawl string, done func(crawlCounts) bool) (n crawlCounts) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		resp, text := d.ask(http.MethodGet, "/api/crawls/"+crawl, "")
		n = crawlCounts{}
		if err := json.Unmarshal([]byte(text), &n); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("crawl %s: %s %s", crawl, resp.Status, text)
		}
		if done(n) {
			return n
		}
		if time.Now().After(late) {
			t.Fatalf("crawl %s does not come so far: %s", crawl, text)
		}
	}
}

// twoSites are sites with links to each other and to a third one, which is nobody's.
func twoSites(t *testing.T) *mirror {
	first := map[string][]string{
		"index.html": {"a.html", "/b/", "x.gif", "http://127.0.0.3:PORT/", "http://127.0.0.9:1/", "a.html#part"},
		"a.html":     {"c.html", "trap/1.html", "?q=1"}, "b/index.html": {"../c.html", "deep/1.html"},
		"b/deep/1.html": {"2.html"}, "b/deep/2.html": {"3.html"}, "b/deep/3.html": {"/last.html"}, "last.html": {},
		"c.html": {"mailto:me@example.org", "//127.0.0.2:PORT/a.html"}, "trap/1.html": {"2.html"}, "trap/2.html": {},
		"x.gif": {},
	}
	second := map[string][]string{"index.html": {"z.html", "http://127.0.0.2:PORT/last.html"}, "z.html": {}}
	a, b := folder(t, first), folder(t, second)
	m := startMirror(t, a, b)
	_, port, _ := net.SplitHostPort(m.hosts[0])
	for _, dir := range []string{a, b} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "PORT", port)), 0o644)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// on returns URLs on a host of the mirror.
func (m *mirror) on(host int, paths ...string) (urls []string) {
	for _, path := range paths {
		urls = append(urls, "http://"+m.hosts[host]+path)
	}
	return urls
}

// A crawl stays on its site, as README's first one does; with depth 0 it fetches the seeds alone.
func TestScopedCrawl(t *testing.T) { eachIndex(t, scopedCrawl) }

func scopedCrawl(t *testing.T, index string) {
	m := twoSites(t)
	d := startDaemon(t, settings(t, index+"[[crawls]]\nid = \"fixed\"\nhosts = [\"127.0.0.3\"]\n"))
	referenceSpider(t, d)
	seed := "http://" + m.hosts[0] + "/\n"
	command(t, seed, "put", "--at", d.at, "--crawl", "fixed", "-").want(t, 0, `"invalid":0,"out_of_scope":1}`, "")
	command(t, seed, "put", "--at", d.at, "--depth", "-2", "-").want(t, 2, "", "--depth: -2 is not from 0 to")
	command(t, seed, "put", "--at", d.at, "--depth", "0", "--crawl", "seeds", "-").want(t, 0, `"crawl":"seeds"`, "")
	if n := crawled(t, d, "seeds", 1); n.Completed != 1 || n.Rules["depth"] == 0 {
		t.Errorf("of depth 0: %+v; want the seed alone", n)
	}
	submitted := fmt.Sprintf(`{"url":%q,"appid":"myapp","crawlid":"asked","maxdepth":0}`, strings.TrimSpace(seed))
	command(t, submitted, "crawl", "submit", "--at", d.at, "-").want(t, 0, `"status":"new"`, "")
	if n := crawled(t, d, "asked", 1); n.Completed != 1 || n.Rules["depth"] == 0 {
		t.Errorf("submitted with maxdepth 0: %+v; want the seed alone", n)
	}
	if got, want := m.pages("reference"), m.on(0, "/"); !slices.Equal(got, want) {
		t.Errorf("with depth 0 the spider asked %q; want %q", got, want)
	}
	command(t, seed, "put", "--at", d.at, "--same-site", "-").want(t, 0,
		`{"new":1,"known":0,"invalid":0,"crawl":"127.0.0.2"}`, "")
	n := crawled(t, d, "127.0.0.2", 12)
	want := m.on(0, "/", "/a.html", "/a.html?q=1", "/b/", "/b/deep/1.html", "/b/deep/2.html",
		"/b/deep/3.html", "/c.html", "/last.html", "/trap/1.html", "/trap/2.html", "/x.gif")
	if got := m.pages("reference"); !slices.Equal(got, want) {
		t.Errorf("the spider asked\n%q; want\n%q", got, want)
	}
	if n.Rules["domain"] == 0 {
		t.Errorf("%+v; want that links to other sites were refused by domain", n)
	}
	command(t, "", "crawl", "show", "--at", d.at, "127.0.0.2").want(t, 0, "domains       127.0.0.2\n", "")
}

// crawl stop ends what a crawl has discovered: in the store, and in the slots.
func TestStopReachesLinks(t *testing.T) { eachIndex(t, stopReachesLinks) }

func stopReachesLinks(t *testing.T, index string) {
	var links []string
	pages := map[string][]string{}
	for i := range 40 {
		links = append(links, fmt.Sprintf("/%d.html", i))
		pages[fmt.Sprintf("%d.html", i)] = []string{"/"}
	}
	pages["index.html"] = links
	m := startMirror(t, folder(t, pages))
	d := startDaemon(t, settings(t, index+"[[rules]]\nhosts = [\"127.0.0.2\"]\nper_sec = 1.0\n"))
	referenceSpider(t, d)
	for _, c := range []struct{ name, crawl string }{
		{name: "of no application", crawl: "put"}, {name: "submitted", crawl: "asked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := "http://" + m.hosts[0] + "/"
			if c.crawl == "put" {
				command(t, seed, "put", "--at", d.at, "--same-site", "--crawl", c.crawl, "-").want(t, 0, `"new":1`, "")
			} else {
				command(t, fmt.Sprintf(`{"url":%q,"appid":"myapp","crawlid":%q,"maxdepth":2}`, seed, c.crawl),
					"crawl", "submit", "--at", d.at, "-").want(t, 0, `"status":"new"`, "")
			}
			awaitCrawl(t, d, c.crawl, func(n crawlCounts) bool { return n.Scheduled+n.InTransit+n.Completed == 41 })
			before := len(m.pages("reference"))
			command(t, "", "crawl", "stop", "--at", d.at, c.crawl).want(t, 0, "", "")
			if n := crawled(t, d, c.crawl, 41); !n.Stopped && c.crawl == "put" {
				t.Errorf("%+v; want it stopped", n)
			}
			if n := len(m.pages("reference")); n > before+3 {
				t.Errorf("%d pages were asked, %d before the stop; want only what was on its way then", n, before)
			}
		})
	}
}

// TestStopReachesLostDocuments: crawl stop ends documents that a spider had when its connection was
// lost, before the stop or after it, although no other spider connects.
func TestStopReachesLostDocuments(t *testing.T) { eachIndex(t, stopReachesLostDocuments) }

func stopReachesLostDocuments(t *testing.T, index string) {
	const docs = 30
	d := startDaemon(t, settings(t, "frontier.listen = \"127.0.0.1:0\"\n"+index))
	for i, owner := range []string{"", `"metadata":{"appid":["myapp"],"spiderid":["link"]},`} {
		crawls := [2]string{fmt.Sprint("before", i), fmt.Sprint("after", i)}
		var puts strings.Builder
		for n := range 2 * docs {
			fmt.Fprintf(&puts, "{%s\"url\":\"http://127.0.%d.%d/\",\"crawl\":%q}\n", owner, i, n+1, crawls[n%2])
		}
		command(t, "", "put", "--at", d.at, write(t, "puts.ndjson", puts.String())).want(t, 0, `"new":60`, "")
		sp := dialSpider(t, d.spiders)
		for range 2 * docs {
			fmt.Fprintf(sp.conn, "%s WORKING\n", sp.next()[0])
		}
		stop := func(crawl string) {
			t.Helper()
			command(t, "", "crawl", "stop", "--at", d.at, crawl).want(t, 0, "", "")
		}
		stop(crawls[1])
		sp.conn.Close()
		stop(crawls[0])
		for _, crawl := range crawls {
			crawled(t, d, crawl, docs)
		}
	}
}

const scrapySpider = `
import sys, json
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

conf = json.loads(sys.argv[1])

class Mirror(CrawlSpider):
    name = "mirror"
    start_urls = conf["seeds"]
    allowed_domains = conf["domains"]
    rules = [Rule(LinkExtractor(deny=conf["deny"], deny_extensions=[], tags=("a", "area", "iframe", "frame"),
                                attrs=("href", "src")), follow=True)]

process = CrawlerProcess({
    "USER_AGENT": "scrapy/1", "DEPTH_LIMIT": conf["depth"], "ROBOTSTXT_OBEY": False, "LOG_LEVEL": "ERROR",
    "CONCURRENT_REQUESTS": 1, "DEPTH_PRIORITY": 1, "TELNETCONSOLE_ENABLED": False, "DOWNLOAD_DELAY": 0,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue", "HTTPERROR_ALLOW_ALL": True,
})
process.crawl(Mirror)
process.start()
`

// scrapyPython returns a Python that has Scrapy, or skips the test.
func scrapyPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("SCRAPY_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import scrapy").Run(); err != nil {
		t.Skip("Scrapy is not installed: pip install scrapy, and name its Python in SCRAPY_PYTHON")
	}
	return python
}

// mirrored is a static mirror, and which of its pages are crawled.
type mirrored struct {
	name    string
	folders []string // of Debian's documentation packages; nil: twoSites
	path    string   // of the first page
	domains []string
	deny    []string
	depth   int // 0: any
}

// TestSamePagesAsScrapy crawls static mirrors with the reference spider and with Scrapy's
// CrawlSpider, within the same domains, depth and denied patterns. Both ask the same pages.
func TestSamePagesAsScrapy(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("crawls four sites twice")
	}
	python := scrapyPython(t)
	for _, c := range []mirrored{
		{name: "two sites", path: "/", domains: []string{"127.0.0.2", "127.0.0.3"}, deny: []string{"/trap/"}},
		{name: "one of two sites, two links deep", path: "/", domains: []string{"127.0.0.2"}, depth: 2},
		{name: "libxslt", folders: []string{"/usr/share/doc/libxslt1-dev"}, path: "/html/index.html",
			domains: []string{"127.0.0.2"}},
		{name: "Django, two links deep", folders: []string{"/usr/share/doc/python-django-doc/html"},
			path: "/index.html", domains: []string{"127.0.0.2"}, depth: 2, deny: []string{"/_sources/", `\.js$`}},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, python) })
	}
}

func (c mirrored) test(t *testing.T, python string) {
	for _, dir := range c.folders {
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("a documentation package is not installed: %v", err)
		}
	}
	var m *mirror
	if c.folders == nil {
		m = twoSites(t)
	} else {
		m = startMirror(t, c.folders...)
	}
	seed := "http://" + m.hosts[0] + c.path
	conf, _ := json.Marshal(map[string]any{"seeds": []string{seed}, "domains": c.domains, "deny": c.deny,
		"depth": c.depth})
	file := write(t, "mirror.py", scrapySpider)
	if out, err := exec.CommandContext(t.Context(), python, file, string(conf)).CombinedOutput(); err != nil {
		t.Fatalf("Scrapy: %v\n%s", err, out)
	}
	want := m.pages("scrapy")
	d := startDaemon(t, settings(t, ""))
	referenceSpider(t, d)
	command(t, seed, append(c.args(d.at), "-")...).want(t, 0, `"new":1`, "")
	t.Logf("%+v", crawled(t, d, "mirror", 1))
	got := m.pages("reference")
	for _, url := range want {
		if !slices.Contains(got, url) {
			t.Errorf("Scrapy alone asked %s", url)
		}
	}
	for _, url := range got {
		if !slices.Contains(want, url) {
			t.Errorf("the reference spider alone asked %s", url)
		}
	}
	if len(want) < 5 {
		t.Errorf("Scrapy asked %q: the test tests too little", want)
	}
	t.Logf("%d pages", len(want))
}

// args are those of "urlserver put".
func (c mirrored) args(at string) []string {
	args := []string{"put", "--at", at, "--crawl", "mirror"}
	for _, domain := range c.domains {
		args = append(args, "--domain", domain)
	}
	for _, pattern := range c.deny {
		args = append(args, "--deny", pattern)
	}
	if c.depth > 0 {
		args = append(args, "--depth", fmt.Sprint(c.depth))
	}
	return args
}
