package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// levelsRules make 127.0.1.0/24 a shared network that may not be asked for the first quarter of an
// hour.
const levelsRules = `[[rules]]
networks = ["127.0.1.0/24"]
shared = true
per_sec = 0.001
concurrent = 1
`

// newLevels is a daemon with sites that each level holds back. At 127.0.0.2 f0, f1 and f2 answer
// 503 again and again; calm, which answers 404, waits for the address with them. At 127.0.0.3 slow
// has a Crawl-delay of an hour, closed has answered 503 with a Retry-After of an hour, and quick
// is fetched. n0 and n1 are on a shared network.
func newLevels(t *testing.T) *daemon {
	t.Helper()
	port := serveSites(t, func(host string) string {
		if host == "slow.test" {
			return "User-agent: *\nCrawl-delay: 3600\n"
		}
		return ""
	})
	names := serveNames(t, func(name string) string {
		switch name {
		case "f0.test.", "f1.test.", "f2.test.", "calm.test.":
			return "127.0.0.2"
		case "slow.test.", "closed.test.", "quick.test.":
			return "127.0.0.3"
		}
		return "127.0.1.1"
	})
	sp := &sitesSpider{began: time.Now(), most: 100, open: map[string]int{}, pages: map[string]int{},
		takes: func(string) time.Duration { return 0 },
		status: func(site string) string {
			switch site {
			case "f0.test", "f1.test", "f2.test":
				return "503"
			case "closed.test":
				return "503 3600"
			case "quick.test":
				return "200"
			}
			return "404"
		}}
	d := startDaemon(t, write(t, "urlserver.toml", strings.Replace(
		fmt.Sprintf(sitesBase, names, levelsRules), "Req_Host_Per_Sec = 200", "Req_Host_Per_Sec = 20", 1)))
	put(t, d, []string{"f0.test", "f1.test", "f2.test", "calm.test"}, port, 0, 1000)
	put(t, d, []string{"slow.test", "closed.test", "quick.test", "n0.test", "n1.test"}, port, 0, 2)
	go sp.work(t, d.spiders)
	return d
}

// levelView is a level in the answer of /api/hosts/{host}.
type levelView struct {
	Name     string
	Gap      float64 `json:"gap_s"`
	Open     int
	MostOpen int        `json:"most_open"`
	NextSend *time.Time `json:"next_send"`
	Backoff  float64    `json:"backoff_s"`
	Why      string
}

// levelsOf asks for a host until ok accepts its levels and why nothing is sent to it.
func levelsOf(t *testing.T, d *daemon, host string, ok func(site, address *levelView, why string) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		resp, text := d.ask("GET", "/api/hosts/"+host, "")
		var x struct {
			Site, Address levelView
			Why           string
		}
		if resp.StatusCode == http.StatusOK {
			if err := json.Unmarshal([]byte(text), &x); err != nil {
				t.Fatal(err)
			}
			if ok(&x.Site, &x.Address, x.Why) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("/api/hosts/%s: %s", host, text)
		}
	}
}

// TestLevelsOfHosts: /api/hosts/{host} tells what each level holds back, until when, and because of
// whom.
func TestLevelsOfHosts(t *testing.T) {
	t.Parallel() // it mostly waits
	d := newLevels(t)
	levelsOf(t, d, "calm.test", func(site, address *levelView, why string) bool {
		return site.Name == "calm.test" && site.Backoff == 0 && address.Name == "127.0.0.2" &&
			address.Backoff == address.Gap && address.Backoff >= 0.1 && address.NextSend.After(time.Now()) &&
			strings.Contains(address.Why, "the address 127.0.0.2 backs off") && namesAll(address.Why) &&
			strings.Contains(why, address.Why)
	})
	levelsOf(t, d, "f0.test", func(site, _ *levelView, _ string) bool {
		return site.Name == "f0.test" && site.Backoff > 0 && site.Backoff == site.Gap && site.MostOpen == 1
	})
	hour := func(t time.Time) bool {
		return time.Until(t) > 30*time.Minute && time.Until(t) < time.Hour+time.Second
	}
	levelsOf(t, d, "slow.test", func(site, address *levelView, why string) bool {
		return site.Gap == 3600 && site.Backoff == 0 && hour(*site.NextSend) &&
			strings.Contains(site.Why, "Crawl-delay of its robots.txt, 1h0m0s") &&
			strings.Contains(why, site.Why) && address.Name == "127.0.0.3" &&
			address.Gap == 0.05 && address.Backoff == 0 && address.Why == ""
	})
	levelsOf(t, d, "closed.test", func(site, address *levelView, why string) bool {
		return site.Backoff == 3600 && hour(*site.NextSend) && strings.Contains(why, "Retry-After") &&
			address.Backoff == 0
	})
	levelsOf(t, d, "n0.test", func(site, address *levelView, why string) bool {
		return site.Name == "n0.test" && address.Name == "127.0.1.0/24" && address.Gap == 1000 &&
			address.MostOpen == 1 && strings.Contains(why, "the limits of the shared network 127.0.1.0/24")
	})
	_, text := d.ask("GET", "/api/hosts/n0.test", "")
	var members struct{ Site, Address map[string]any }
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatal(err)
	}
	want := []string{"backoff_s", "gap_s", "last_send", "most_open", "name", "next_send", "open", "why"}
	for name, level := range map[string]map[string]any{"site": members.Site, "address": members.Address} {
		if got := slices.Sorted(maps.Keys(level)); !slices.Equal(got, want) {
			t.Errorf("members of %s: %q; want %q", name, got, want)
		}
	}
}

// namesAll reports whether a text names the sites that made 127.0.0.2 back off.
func namesAll(text string) bool {
	return strings.Contains(text, "f0.test") && strings.Contains(text, "f1.test") &&
		strings.Contains(text, "f2.test")
}

// untilHas repeats a question until the answer has all of the texts.
func untilHas(t *testing.T, what string, ask func() string, texts ...string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		answer := ask()
		missing := slices.IndexFunc(texts, func(text string) bool { return !strings.Contains(answer, text) })
		if missing < 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: no %q in\n%s", what, texts[missing], answer)
		}
	}
}

// TestLevelsElsewhere: the list of hosts, the commands and the metrics tell the levels.
func TestLevelsElsewhere(t *testing.T) {
	t.Parallel() // it mostly waits
	d := newLevels(t)
	get := func(path string) func() string {
		return func() string { _, text := d.ask("GET", path, ""); return text }
	}
	shell := func(args ...string) func() string {
		return func() string { return command(t, "", append(args, "--at", d.at)...).out }
	}
	untilHas(t, "list", get("/api/hosts?text=calm"), `"held_by":"address","why":"`,
		"the address 127.0.0.2 backs off", "f0.test", "f1.test", "f2.test")
	untilHas(t, "list", get("/api/hosts?text=slow"), `"held_by":"site","why":"`,
		"Crawl-delay of its robots.txt")
	untilHas(t, "list", get("/api/hosts?text=n0"), `"held_by":"network","why":"`,
		"the shared network 127.0.1.0/24")
	untilHas(t, "explain", shell("explain", "slow.test"),
		"site        slow.test: gap 3600 s, 0 of 1 requests open",
		"Crawl-delay of its robots.txt", "address     127.0.0.3: gap 0.05 s")
	untilHas(t, "explain", shell("explain", "calm.test"), "calm.test:", "the address 127.0.0.2 backs off",
		"f0.test")
	untilHas(t, "status", shell("status"), "2 hosts for their site, ", " 2 for their shared network",
		" 1 back off now", " 1 with Retry-After; ")
	untilHas(t, "top", shell("top", "--lines", "1"), "waiting: site 2  address ", "  network 2")
	untilHas(t, "metrics", get("/metrics"), "urlserver_hosts_waiting{level=\"network\"} 2\n",
		"urlserver_hosts_waiting{level=\"site\"} 2\n", "urlserver_addresses_backing_off 1\n",
		"urlserver_retry_after_total 1\n", "urlserver_put_off_total{level=\"network\"} 2\n")
	p := openPTY(t, "top", "--at", d.at)
	for _, want := range []struct{ group, level string }{
		{"127.0.0.2", "address"}, {"127.0.0.3", "site"}, {"n0.test", "network"},
	} {
		p.until(want.group+" waits for its "+want.level, func(screen string) bool {
			for line := range strings.Lines(strip(screen)) {
				if f := strings.Fields(line); len(f) > 8 && f[1] == want.group && f[7] == want.level {
					return true
				}
			}
			return false
		})
	}
	if _, err := io.WriteString(p.far, "q"); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}
