package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPausesOutliveAKill kills a daemon with an index on disk at different moments. The next one
// requests no page of a slow site before that may be asked, and its robots.txt not at all.
func TestPausesOutliveAKill(t *testing.T) {
	t.Parallel() // it mostly waits
	const delay = 4 * time.Second
	for _, c := range []struct {
		name, robots, answer string
		pages                int // that were sent before the kill
	}{
		{name: "its robots.txt says Crawl-delay", robots: "User-agent: *\nCrawl-delay: 4\n"},
		{name: "a page is at the spider", robots: "User-agent: *\nCrawl-delay: 4\n", pages: 1},
		{name: "a page asks for patience", pages: 1, answer: "DONE 503 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan time.Time, 100)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked <- time.Now()
				fmt.Fprint(w, c.robots)
			}))
			defer web.Close()
			seeds := write(t, "seeds", fmt.Sprintf("%s/1\n%s/2\n%s/3\n", web.URL, web.URL, web.URL))
			text := strings.Replace(base, "robots.enabled = false", "", 1)
			index := fmt.Sprintf("[docindex]\nkind = \"disk\"\npath = %q\nseeds = [%q]\n",
				filepath.Join(t.TempDir(), "db"), seeds)
			file := write(t, "urlserver.toml", fmt.Sprintf(text, index))

			first := startChild(t, file)
			spider := dialSpider(t, first.spiders)
			last := <-asked
			for range c.pages {
				trans := spider.next()[0]
				last = time.Now()
				if c.answer != "" {
					fmt.Fprintln(spider.conn, trans, c.answer)
				}
			}
			time.Sleep(delay / 4) // the kill comes then
			first.signal(syscall.SIGKILL)
			first.wait()

			second := startChild(t, file)
			dialSpider(t, second.spiders).next()
			if gap := time.Since(last); gap < delay {
				t.Errorf("a page was sent %v after the last request; the site asks for %v", gap, delay)
			}
			if len(asked) > 0 {
				t.Error("robots.txt was fetched again")
			}
			second.signal(syscall.SIGKILL)
			second.wait()
		})
	}
}
