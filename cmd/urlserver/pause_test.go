package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPausesOutliveAKill kills a daemon with an index on disk at different moments. The next one
// requests neither robots.txt nor a page of a slow site before that may be asked.
func TestPausesOutliveAKill(t *testing.T) {
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
			lines := spiderLines(t, first.spiders)
			last := <-asked
			for range c.pages {
				line := <-lines.in
				last = time.Now()
				if c.answer != "" {
					lines.say(strings.Fields(line)[0] + " " + c.answer)
				}
			}
			time.Sleep(delay / 4) // the kill comes then
			first.signal(syscall.SIGKILL)
			first.wait()

			second := startChild(t, file)
			spiderLines(t, second.spiders)
			if gap := (<-asked).Sub(last); gap < delay {
				t.Errorf("robots.txt was fetched %v after the last request; the site asks for %v", gap, delay)
			}
			second.signal(syscall.SIGKILL)
			second.wait()
		})
	}
}

// lineSpider is a connection of a spider that fetches nothing.
type lineSpider struct {
	conn net.Conn
	in   chan string
}

func spiderLines(t *testing.T, addr string) *lineSpider {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &lineSpider{conn: conn, in: make(chan string, 100)}
	go func() {
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			s.in <- lines.Text()
		}
	}()
	return s
}

func (s *lineSpider) say(line string) { fmt.Fprintln(s.conn, line) }
