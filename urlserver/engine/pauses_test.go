package engine

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/robots"
)

// TestPausesOutliveAStart: an engine is told of two hosts that are to be left alone for a minute. It
// follows no redirect of another host's robots.txt to the one before that, asks no host that is one
// site with the other one, and asks other hosts at their addresses.
func TestPausesOutliveAStart(t *testing.T) {
	const pause = time.Minute
	at := map[string]string{"slow.test": "10.0.0.1", "near.test": "10.0.0.1", "from.test": "10.0.0.2",
		"a.test": "10.0.0.3", "b.test": "10.0.0.3", "c.test": "10.0.0.3"}
	cfg := configs.Default()
	cfg.ReqHostPerSec = 1
	cfg.Rules = []configs.HostRule{{Hosts: []string{"a.test", "b.test"}, Group: "one site"}}
	e := New(cfg, Options{Pauses: []Pause{{"slow.test", pause}, {"a.test", pause}},
		Cached: func(host []byte) (netip.Addr, error, bool) {
			return netip.MustParseAddr(at[string(host)]), nil, true
		}})
	e.Connected("spider")
	stepAt(e, 0)
	p := &Prepared{}
	for i, host := range []string{"from.test", "b.test", "c.test", "near.test"} {
		p.Batch.Add(fmt.Append(nil, i), fmt.Appendf(nil, "http://%s/", host), 0)
	}
	p.Prepare()
	e.Answered(p)
	asked := map[string][]time.Duration{}
	for now := time.Duration(0); now < 2*pause; now += second / 4 {
		stepAt(e, now)
		for _, f := range e.Out.Fetches {
			host := strings.TrimSuffix(strings.TrimPrefix(f.URL, "http://"), "/robots.txt")
			asked[host] = append(asked[host], now)
			answer := robots.Response{Status: 200, Body: []byte("user-agent: *\ndisallow: /\n")}
			if at[host] == "10.0.0.2" {
				answer = robots.Response{Status: 301, Location: "http://slow.test/robots.txt"}
			}
			e.FetchSent(f.ID)
			e.Fetched(f.ID, answer)
		}
		if e.Out.Fetches = nil; now == 10*second {
			x, _ := e.Explain([]byte("slow.test"))
			if !strings.Contains(x.Why, "asked for that before the daemon was started") {
				t.Errorf("explain of the paused host: %s", x.Why)
			}
		}
	}
	for host, want := range map[string][]time.Duration{"slow.test": {pause}, "b.test": {pause},
		"from.test": {second}, "near.test": {second}, "c.test": {second}} {
		if is := asked[host]; !slices.EqualFunc(is, want, func(is, want time.Duration) bool {
			return is >= want && is <= want+second
		}) {
			t.Errorf("%s is asked after %v; want %v", host, is, want)
		}
	}
}

// TestRetryAfterOfRobotsIsKept: a request for robots.txt has no outcome, so the index is told of the
// Retry-After that came with it, whatever the status.
func TestRetryAfterOfRobotsIsKept(t *testing.T) {
	const retry = 10 * time.Minute
	for _, host := range []string{"a.test", "192.0.2.7", "2001:db8::1"} {
		for status, want := range map[int]time.Duration{404: 0, 429: retry, 500: retry} {
			e := New(configs.Default(), Options{Exact: true, Cached: func([]byte) (netip.Addr, error, bool) {
				return netip.MustParseAddr("192.0.2.1"), nil, true
			}})
			e.Connected("spider")
			stepAt(e, 0)
			p := &Prepared{}
			p.Batch.Add([]byte("1"), urlOf([]byte(host)), 0)
			p.Prepare()
			e.Answered(p)
			stepAt(e, 10*second)
			if len(e.Out.Fetches) != 1 {
				t.Fatalf("%d requests for robots.txt; want 1", len(e.Out.Fetches))
			}
			e.Fetched(e.Out.Fetches[0].ID, robots.Response{Status: status, RetryAfter: want})
			kept := time.Duration(0)
			for i := range e.Out.Pauses.Len() {
				if o := e.Out.Pauses.At(i); string(docindex.HostOf(o.URL)) == host {
					kept = o.Pause
				}
			}
			if kept != want {
				t.Errorf("status %d: the index is told to leave %s alone for %v; want %v", status, host, kept, want)
			}
		}
	}
}
