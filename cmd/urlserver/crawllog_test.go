package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// crawlLine is a line of the crawl log.
type crawlLine struct {
	At       time.Time
	URL      string
	DocID    string `json:"doc_id"`
	Crawl    string
	Outcome  string
	Status   *int
	Fetch    *float64 `json:"fetch_s"`
	Attempts int
	Via      *string
}

func crawlLines(t *testing.T, path string) (all []crawlLine) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for one := range strings.Lines(string(text)) {
		var l crawlLine
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatalf("line %q: %v", one, err)
		}
		all = append(all, l)
	}
	return all
}

// TestCrawlLog has a line for each outcome, also after a restart, and names the document's crawl.
func TestCrawlLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "crawl.log")
	file := settings(t, fmt.Sprintf("log.crawl = %q", path))
	began := time.Now().Truncate(time.Millisecond)
	for run := range 2 {
		d := startDaemon(t, file)
		sp := dialSpider(t, d.spiders)
		command(t, `{"url":"http://127.0.0.1/a"}`+"\n"+`{"url":"http://127.0.0.2/b","crawl":"news","doc_id":"b1"}`+"\n"+
			`{"url":"http://10.0.0.1/c"}`, "put", "--at", d.at, "-").want(t, 0, `"new":3`, "")
		for range 2 {
			f := sp.next()
			if f[1] == "b1" {
				fmt.Fprintf(sp.conn, "%s DONE\n", f[0])
			} else {
				fmt.Fprintf(sp.conn, "%s DONE 404\n", f[0])
			}
		}
		d.shows("/metrics", `urlserver_crawl_log_lines_total{result="written"} 3`)
		d.shows("/metrics", `urlserver_crawl_log_lines_total{result="lost"} 0`)
		d.stop()
		lines := crawlLines(t, path)
		if len(lines) != 3*(run+1) {
			t.Fatalf("after run %d there are %d lines; want %d", run, len(lines), 3*(run+1))
		}
		for _, l := range lines {
			if l.At.Before(began) || l.At.After(time.Now()) || l.Via == nil || *l.Via != "" {
				t.Errorf("line %+v: want a time since %v, and an empty via", l, began)
			}
		}
		lines = lines[3*run:]
		slices.SortFunc(lines, func(a, b crawlLine) int { return strings.Compare(a.URL, b.URL) })
		c, a, b := lines[0], lines[1], lines[2]
		if a.URL != "http://127.0.0.1/a" || a.Crawl != "DEFAULT" || a.Outcome != "done" || *a.Status != 404 ||
			a.Fetch == nil || *a.Fetch < 0 || a.Attempts != 1 {
			t.Errorf("the first is %+v", a)
		}
		if b.DocID != "b1" || b.Crawl != "news" || b.Outcome != "done" || b.Status != nil || b.Fetch == nil {
			t.Errorf("the second is %+v", b)
		}
		if c.URL != "http://10.0.0.1/c" || c.Outcome != "dns" || c.Fetch != nil || c.Attempts != 0 {
			t.Errorf("the one without an address that may be asked is %+v", c)
		}
	}
}

// TestCrawlLogIsChecked refuses a crawl log in a folder that is not there, and applies another path
// after a restart only.
func TestCrawlLogIsChecked(t *testing.T) {
	const missing = "log.crawl: stat /nowhere: no such file"
	bad := settings(t, `log.crawl = "/nowhere/crawl.log"`)
	command(t, "", "check", bad).want(t, 1, "", missing)
	command(t, "", "serve", bad).want(t, 1, "", missing)
	file := settings(t, "")
	d := startDaemon(t, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "crawl.log")
	if err := os.WriteFile(file, fmt.Appendf(text, "log.crawl = %q\n", path), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "", "check", file).want(t, 0, "no mistakes", "")
	command(t, "", "reload", "--at", d.at).want(t, 1, "log.crawl: holds only after a restart", "")
	if _, err := os.Stat(path); err == nil {
		t.Errorf("a reload has made %s; want that a restart does", path)
	}
}
