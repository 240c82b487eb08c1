package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

// TestServeRedis kills one of two daemons with an index in Redis. The other one fetches everything.
func TestServeRedis(t *testing.T) {
	t.Parallel() // it mostly waits
	redis := redistest.Start(t)
	const docs = 12
	seeds := ""
	for i := range docs {
		seeds += fmt.Sprintf("http://127.9.0.%d/%d\n", 1+i%4, i)
	}
	file := settings(t,
		fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\nprefix = \"crawl:\"\nseeds = "+
			"[%q]\nmax_retry = \"1s\"\n"+
			"[reservation]\nkind = \"redis\"\naddrs = [%[1]q]\nlease = \"2s\"\npenalty = \"100ms\"\njanitor "+
			"= \"200ms\"", redis.Addr(), write(t, "seeds", seeds)))
	c := startChild(t, file)
	first := dialSpider(t, c.spiders)
	first.next()
	first.next()
	c.signal(syscall.SIGKILL)
	c.wait()
	d := startDaemon(t, file)
	second := dialSpider(t, d.spiders)
	seen := map[string]bool{}
	fetch := func() {
		line := second.next() // TRANS_ID DOC_ID HOST_IP URL
		seen[line[3]] = true
		second.done(line[0])
	}
	for len(seen) < docs {
		fetch()
	}
	command(t, "http://127.9.0.1/0\nhttp://127.9.0.1/new\n", "put", "--at", d.at, "-").want(t, 0,
		`{"new":1,"known":1,"invalid":0}`, "")
	for !seen["http://127.9.0.1/new"] {
		fetch()
	}
}

// TestCrawlRedis submits a crawl to one daemon and stops it at another. Then the first sends
// nothing of it.
func TestCrawlRedis(t *testing.T) {
	redis := redistest.Start(t)
	more := fmt.Sprintf(
		"[docindex]\nkind = \"redis\"\naddrs = [%q]\nmax_retry = \"1s\"\n[reservation]\njanitor = "+
			"\"100ms\"\n", redis.Addr())
	a, b := startDaemon(t, settings(t, more)), startDaemon(t, settings(t, more))
	// ask repeats a request until Redis answers, which on a busy machine may take a while
	ask := func(d *daemon, what, in string) string {
		t.Helper()
		got := command(t, in, "crawl", what, "--at", d.at, "-")
		for got.code != 0 && strings.Contains(got.errs, "503 Service Unavailable") {
			got = command(t, in, "crawl", what, "--at", d.at, "-")
		}
		got.want(t, 0, "", "")
		return got.out
	}
	want := func(got string, n int, part string) {
		t.Helper()
		if strings.Count(got, part) != n {
			t.Errorf("%s; want %s %d times", got, part, n)
		}
	}
	info, stop := fmt.Sprintf(testInfo, "c1"), fmt.Sprintf(testStop, "c1")
	want(ask(a, "info", info), 1, `"total_pending":0`)
	want(ask(b, "info", info), 1, `"total_pending":0`)
	var all []string
	for i := range 20 {
		all = append(all, crawlOf("c1", fmt.Sprintf("http://127.0.0.1/%d", i), `,"priority":7`))
	}
	want(ask(a, "submit", strings.Join(all, "\n")), 20, `"action":"crawl","status":`)
	want(ask(b, "info", info), 1, `"total_pending":20,"total_domains":1,"low_priority":7,"high_priority":7,`)
	want(ask(b, "stop", stop), 1, `{"action":"stop","total_purged":`)
	want(ask(a, "submit", all[0]+all[1]), 2, `"status":"dropped"`)
	// until the slots of both daemons have cancelled the crawl
	for !strings.Contains(ask(a, "info", info), `"total_pending":0,"total_domains":0,"domains":{}`) {
		time.Sleep(10 * time.Millisecond)
	}
	want(ask(a, "submit", crawlOf("c2", "http://127.0.0.1/other", "")), 1, `"action":"crawl"`)
	b.stop()
	sp := dialSpider(t, a.spiders)
	if line := sp.next(); line[3] != "http://127.0.0.1/other" {
		t.Errorf("sent is %v; want the other crawl's", line)
	}
	if _, text := a.get("/metrics"); !strings.Contains(text,
		`urlserver_crawl_documents{appid="testapp",crawlid="c1",spiderid="link",state="purged"} 20`) {
		t.Errorf("metrics lack the stopped crawl:\n%s", text)
	}
}

// TestMaxPagesOfThreeDaemons puts into three daemons on one Redis at full speed. Together they
// take as many documents as the crawl and each domain may have, and no more.
func TestMaxPagesOfThreeDaemons(t *testing.T) {
	t.Parallel() // it mostly waits
	const most, mostOfDomain, puts = 120, 30, 8
	file := settings(t, fmt.Sprintf("[docindex]\nkind = \"redis\"\naddrs = [%q]\nmax_retry = \"1s\"\n",
		redistest.Start(t).Addr()))
	daemons := []*daemon{startDaemon(t, file), startDaemon(t, file), startDaemon(t, file)}
	scope := fmt.Sprintf(`{"scope":{"max_pages":%d,"max_pages_domain":%d}}`, most, mostOfDomain)
	if code, text := daemons[0].sets("/api/crawls/c", scope); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, d := range daemons {
		d.shows("/api/crawls/c", fmt.Sprintf(`"max_pages":%d,`, most))
	}
	var all sync.WaitGroup
	for n, d := range daemons {
		for i := range puts {
			all.Go(func() {
				urls := ""
				for k := range 60 { // another daemon has half of them, too
					k += i*1000 + n*30
					urls += fmt.Sprintf("http://h%d.d%d.example/%d\n", k%7, k%5, k)
				}
				command(t, urls, "put", "--at", d.at, "--crawl", "c", "-").want(t, 0, `"invalid":0`, "")
			})
		}
	}
	all.Wait()
	n := awaitCrawl(t, daemons[1], "c", func(crawlCounts) bool { return true })
	if n.Scheduled+n.InTransit != most {
		t.Errorf("%+v; want %d documents", n, most)
	}
	resp, text := daemons[2].ask(http.MethodGet, "/docindex/dump", "")
	ofDomain := map[string]int{}
	for line := range strings.Lines(text) {
		for i := range 5 {
			if domain := fmt.Sprintf(".d%d.example/", i); strings.Contains(line, domain) {
				ofDomain[domain]++
			}
		}
	}
	for domain, n := range ofDomain {
		if n > mostOfDomain {
			t.Errorf("%d documents of %s; want %d", n, domain, mostOfDomain)
		}
	}
	if len(ofDomain) < most/mostOfDomain {
		t.Errorf("%s: the documents are of %v", resp.Status, ofDomain)
	}
}
