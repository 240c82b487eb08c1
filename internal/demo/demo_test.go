package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// smallSize is a synthetic web that is crawled in seconds. Smaller would not do: a gap must be
// longer than a tick, and Retry-After counts whole seconds.
var smallSize = syntheticSize{pages: 9, tick: 20 * ms, again: 1}

const testPerSec = 200

var testAt = listens{page: "127.0.0.1:0"}

func smallWeb(port uint16) (*web, error) { return syntheticWeb(smallSize, port), nil }

func TestSyntheticWeb(t *testing.T) {
	var out bytes.Buffer
	progress := visitor{page: make(chan string, 1)}
	err := demonstrate(t.Context(), syntheticAddrs, smallWeb, testPerSec, testAt, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &progress.Buffer)
	}
	for _, want := range []string{
		"20 hosts on 6 addresses", "done 200", "done 301", "done 404", "done 429", "done 503",
		"robots", "dns",
		"politeness was kept; each reachable page was fetched once, and nothing else",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the report:\n%s", want, &out)
		}
	}
	checkTable(t, out.String(), 6)
	if text := <-progress.page; !strings.Contains(text, "<title>") {
		t.Errorf("the dashboard is %q", text)
	}
	if !strings.Contains(progress.String(), "pages to fetch") {
		t.Errorf("progress: %q", &progress.Buffer)
	}
}

// visitor receives the progress of a crawl. It requests the dashboard as soon as its address is
// printed.
type visitor struct {
	bytes.Buffer
	page chan string // receives the dashboard's first page
}

func (v *visitor) Write(p []byte) (int, error) {
	if _, at, ok := strings.Cut(string(p), "dashboard while the crawl goes on: "); ok {
		go func() {
			resp, err := http.Get(strings.TrimSpace(at))
			if err != nil {
				v.page <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			v.page <- fmt.Sprint(string(text), err)
		}()
	}
	return v.Buffer.Write(p)
}

// checkTable checks the table at the end of a report.
func checkTable(t *testing.T, report string, rows int) {
	t.Helper()
	lines := strings.Split(strings.TrimRight(report, "\n"), "\n")
	table := lines[len(lines)-rows-1:]
	heading := regexp.MustCompile(`^address +hosts +pages +smallest gap seen +gap allowed +at the server +most open$`)
	if !heading.MatchString(table[0]) {
		t.Errorf("heading %q", table[0])
	}
	row := regexp.MustCompile(`^127\.77\.0\.\d+ +\d+ +\d+ +(\d+\.\d{4}s|-) +\d+\.\d{4}s +(\d+\.\d{4}s|-) +[01]$`)
	for _, line := range table[1:] {
		if !row.MatchString(line) {
			t.Errorf("row %q", line)
		}
	}
}

func TestFolders(t *testing.T) {
	first := tree(t, map[string]string{
		"index.html":   `<a href="a.html">a</a> <a href="sub">sub</a> <a href="missing">m</a> <a href="no/1.html">no</a> <a href="http://127.0.0.1:1/">x</a>`,
		"a.html":       `<a href="index.html">back</a> <a href="http://elsewhere.example/">out</a> <img src="unused.png">`,
		"sub/b.html":   `<base href="/"><a href="a.html?x=1">a</a>`,
		"no/1.html":    "",
		"unlinked.txt": "",
		"robots.txt":   "User-agent: *\nDisallow: /no/\nCrawl-delay: 0.03\n",
	})
	second := tree(t, map[string]string{"x/y/z.html": "", "x/link": "->y", "x/up": "->.."})
	var out bytes.Buffer
	err := crawlAll(t.Context(), []string{first, second}, testPerSec, testAt, &out, io.Discard)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"2 hosts on 2 addresses", `done 200 +12\n`, `done 301 +1\n`,
		`done 404 +1\n`, `robots +1\n`, `dns +1\n`, "2 links to addresses outside"} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in the report:\n%s", want, &out)
		}
	}
	checkTable(t, out.String(), 2)
}

// begin makes a crawl of a small synthetic web. change may change the plan or the rate that the
// oracle checks.
func begin(t *testing.T, change func(c *crawl)) (context.Context, *crawl) {
	t.Helper()
	f, err := listenWebServers(syntheticAddrs)
	must(t, err)
	ctx, c, err := newCrawl(t.Context(), f, syntheticWeb(syntheticSize{pages: 3, tick: ms, again: 1}, f.port),
		testPerSec, zerolog.Nop())
	must(t, err)
	change(c)
	return ctx, c
}

// TestMutations changes the oracle's plan or rate after daemon and spider got theirs. The oracle
// must find the difference.
func TestMutations(t *testing.T) {
	tests := []struct {
		name   string
		change func(c *crawl)
		want   string
	}{
		{name: "rate", want: "politeness broken", change: func(c *crawl) {
			for _, p := range c.oracle.paces {
				p.gap = time.Hour // so that a slow machine breaks it, too
			}
		}},
		{name: "missed", want: "reachable and missed (1)",
			change: func(c *crawl) { c.plan.requests["http://www.test/more"] = 1 }},
		{name: "not to be fetched", want: "fetched though not linked", change: func(c *crawl) {
			delete(c.plan.requests, c.web.seeds[0])
		}},
		{name: "fetched twice", want: "fetched more than once", change: func(c *crawl) {
			c.oracle.requests[c.web.seeds[0]]++
		}},
		{name: "another outcome", want: "ended wrong (1)",
			change: func(c *crawl) { c.plan.ends[c.web.seeds[0]] = docindex.Robots }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, c := begin(t, test.change)
			whole, err := c.run(ctx)
			if !whole || err != nil {
				t.Fatalf("run = %t, %v", whole, err)
			}
			r := c.result(whole)
			var out strings.Builder
			must(t, c.report(&out, r))
			if r.problems == 0 || conclude(r, nil) == nil || !strings.Contains(out.String(), test.want) {
				t.Errorf("%d faults, no %q in the report:\n%s", r.problems, test.want, &out)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	build := func(port uint16) (*web, error) {
		w, err := smallWeb(port)
		w.names["docs.test"].site = cutting{site: w.names["docs.test"].site,
			asked: new(atomic.Int64), cut: cancel}
		return w, err
	}
	err := demonstrate(ctx, syntheticAddrs, build, testPerSec, testAt, &out, io.Discard)
	if err == nil || err.Error() != "demo: interrupted" {
		t.Errorf("error %v, want interrupted", err)
	}
	if !strings.Contains(out.String(), "ended early; nothing wrong so far") {
		t.Errorf("report:\n%s", &out)
	}
	checkTable(t, out.String(), 6)
}

// cutting is a site that calls cut when one page is requested for the second time, and does not
// answer then. The first request is expectedCrawl's.
type cutting struct {
	site
	asked *atomic.Int64
	cut   func()
}

func (s cutting) answer(target string) answer {
	a := s.site.answer(target)
	if target == pageTarget(4) && s.asked.Add(1) == 2 {
		s.cut()
		a.takes = time.Hour
	}
	return a
}

func TestPartsThatFail(t *testing.T) {
	tests := []struct {
		name   string
		change func(c *crawl)
		want   string
	}{
		{name: "web server", want: "serve HTTP on 127.77.0.1",
			change: func(c *crawl) { c.webServers.listeners[0].Close() }},
		{name: "name server", want: "name server", change: func(c *crawl) { c.names.packets.Close() }},
		{name: "doc index", want: "serve HTTP on 127.0.0.1", change: func(c *crawl) { c.index.Close() }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, c := begin(t, test.change)
			if _, err := c.run(ctx); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("run: %v; want an error with %q", err, test.want)
			}
		})
	}
}

func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		w := newWeb("", 8000, nil)
		l, err := newRecordingIndex(ctx, w, func() {})
		must(t, err)
		c := &crawl{web: w, oracle: newOracle(w, time.Second), docIndex: l, perSec: 1, end: end,
			began: time.Now()}
		c.watch(ctx, newScreen(io.Discard))
		if err := context.Cause(ctx); !errors.Is(err, errStuck) {
			t.Errorf("ended by %v, want stuck", err)
		}
		if took, least := time.Since(c.began), c.patience(); took < least || took > least+2*lineEvery {
			t.Errorf("ended after %v, want %v", took, least)
		}
	})
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true}
	io.WriteString(s, "first\n")
	s.show("1 of 2\n\nrow")
	io.WriteString(s, "log\n")
	s.show("2 of 2")
	s.show("")
	const up = "\x1b[2A" // the two lines above the last
	const want = "first\n" + clearDown + "1 of 2\n\nrow" + up + clearDown + "log\n1 of 2\n\nrow" + up +
		clearDown + "2 of 2" + clearDown
	if out.String() != want {
		t.Errorf("screen %q, want %q", &out, want)
	}
	if newScreen(&out).terminal {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name, want string
		args       []string
	}{
		{name: "no rate", args: []string{"--per-sec", "0"},
			want: "--per-sec 0: has to be above 0 and at most 1000"},
		{name: "not a number", args: []string{"--per-sec", "NaN"}, want: "has to be above 0"},
		{name: "too fast", args: []string{"--per-sec", "1001"}, want: "at most 1000"},
		{name: "no folder", args: []string{"missing"}, want: "folder missing: "},
		{name: "unknown flag", args: []string{"--pages", "1"}, want: "unknown flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd := Command()
			cmd.SetArgs(test.args)
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			if err := cmd.ExecuteContext(t.Context()); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
