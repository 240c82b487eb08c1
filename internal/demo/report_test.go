package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/docindex"
)

// finishedCrawl returns a crawl that has ended, of two hosts at one address and a dead one.
func finishedCrawl(t *testing.T) *crawl {
	t.Helper()
	w := newWeb("trial", 8000, []host{
		{name: "a.test", addr: loopback(1), site: stub{}},
		{name: "b.test", addr: loopback(1), site: stub{}},
		{name: "dead.test", addr: loopback(6)},
	})
	w.seeds = []string{"http://a.test:8000/", "http://b.test:8000/"}
	c := &crawl{web: w, plan: expectedCrawl(w), names: &nameServer{}, took: 1234567 * time.Microsecond}
	c.oracle = newOracle(w, 100*ms)
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.oracle.now = func() time.Time { clock = clock.Add(30 * ms); return clock }
	var err error
	c.docIndex, err = newRecordingIndex(t.Context(), w, func() {})
	must(t, err)
	return c
}

func (c *crawl) request(name, target string, byDaemon bool) {
	if !byDaemon {
		c.oracle.sent([]byte(origin(name, c.web.port) + target))
	}
	h := c.web.names[name]
	c.oracle.arrive(h.addr, h, target)(answer{status: 200})
}

func TestReport(t *testing.T) {
	c := finishedCrawl(t)
	c.names.asked.Add(5)
	c.request("a.test", "/robots.txt", true)
	c.request("a.test", "/", false)
	c.request("a.test", "/trap", true)
	end(t, c.docIndex, docindex.Done, 200, 1)
	putAll(t, c.docIndex, "http://127.0.0.1/")
	var out strings.Builder
	r := c.result(true)
	must(t, c.report(&out, r))
	const want = `trial: 3 hosts on 2 addresses, port 8000, crawled in 1.235s
  done 200        1
1 documents ended, of 2 known to the demo; 1 pages and 2 times robots.txt asked for; 5 queries to the name server
1 links to addresses outside of the demo were left alone
slowest way from daemon to web server: 30ms

politeness broken (2):
  127.77.0.1: http://a.test:8000/: asked 60ms after the request before, 100ms is allowed
  127.77.0.1: http://a.test:8000/trap: asked 30ms after the request before, 100ms is allowed
reachable and missed (2):
  http://b.test:8000/
  http://b.test:8000/robots.txt
fetched though not linked, or against robots.txt (1):
  http://a.test:8000/trap
ended wrong (1):
  http://b.test:8000/: no outcome, want done
6 faults, see above

`
	report, table, _ := strings.Cut(out.String(), "Gaps are")
	if report != want {
		t.Errorf("report:\n%s\nwant:\n%s", report, want)
	}
	const rows = `
address     hosts  pages  smallest gap seen  gap allowed  at the server  most open
127.77.0.1  2      1      0.0600s            0.1000s      0.0300s        1
127.77.0.6  1      0      -                  0.1000s      -              0
`
	if !strings.HasSuffix(table, rows) {
		t.Errorf("table:\n%s\nwant at its end:\n%s", table, rows)
	}
}

func TestReportOfAnInterruptedCrawl(t *testing.T) {
	c := finishedCrawl(t)
	r := c.result(false)
	if r.problems != 0 || r.String() != "ended early; nothing wrong so far" {
		t.Errorf("%d faults, %q", r.problems, r)
	}
}

// broken is a writer that always fails.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestReportCannotBeWritten(t *testing.T) {
	c := finishedCrawl(t)
	if err := c.report(broken{}, c.result(true)); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want %v", err, errBroken)
	}
	if _, err := newScreen(broken{}).Write([]byte("x\n")); !errors.Is(err, errBroken) {
		t.Errorf("screen: error %v, want %v", err, errBroken)
	}
}

func TestConclude(t *testing.T) {
	tests := []struct {
		name string
		r    result
		err  error
		want string
	}{
		{name: "well", r: result{whole: true}},
		{name: "faults", r: result{whole: true, problems: 3}, want: "demo: 3 faults"},
		{name: "interrupted", err: context.Canceled, want: "demo: interrupted"},
		{name: "failed", r: result{problems: 1}, err: errBroken, want: "demo: broken"},
		{name: "failed at its end", r: result{whole: true}, err: errBroken, want: "demo: broken"},
		{name: "stuck", err: errStuck,
			want: "demo: stuck: documents are left, and none has ended for too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := conclude(test.r, test.err); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("conclude = %q, want %q", got, test.want)
			}
		})
	}
}

func TestShowProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := finishedCrawl(t)
		c.began = time.Now()
		c.request("a.test", "/", false)
		end(t, c.docIndex, docindex.Done, 200, 1)
		time.Sleep(7 * time.Second)
		var out strings.Builder
		c.showProgress(newScreen(&out))
		const want = "1 of 2 documents ended, 1 of 2 pages asked for, 7s"
		if out.String() != want+"\n" {
			t.Errorf("progress %q, want %q", &out, want)
		}
		out.Reset()
		c.showProgress(&screen{out: &out, terminal: true})
		if got := out.String(); !strings.HasPrefix(got, clearDown+want+"\n\naddress ") ||
			!strings.Contains(got, "\n127.77.0.1 ") {
			t.Errorf("on a terminal %q, want %q and the table", got, clearDown+want)
		}
	})
}

func TestSettings(t *testing.T) {
	s, err := listenNames(newWeb("", 8000, nil))
	must(t, err)
	defer s.packets.Close()
	defer s.streams.Close()
	c := finishedCrawl(t)
	c.names, c.perSec = s, 12.5
	cfg := c.settings()
	if cfg.ReqHostPerSec != 12.5 || cfg.ReqHostConcurrent != 1 || !cfg.Robots.Enabled ||
		cfg.Robots.UserAgent != agent {
		t.Errorf("settings %+v", cfg)
	}
	if len(cfg.Resolver.Servers) != 1 || cfg.Resolver.Servers[0] != s.addr() {
		t.Errorf("servers %v, want %s", cfg.Resolver.Servers, s.addr())
	}
	for _, p := range cfg.Resolver.AllowNetworks {
		if !p.IsSingleIP() || p.Addr() != loopback(1) && p.Addr() != loopback(6) {
			t.Errorf("%v may be fetched from", p)
		}
	}
}
