package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// sitesSpider fetches nothing, and counts what it is told to fetch. All that it finds wrong is
// wrong however late this machine is: it ends a fetch before it says so, and a line cannot arrive
// before it was sent.
type sitesSpider struct {
	began       time.Time
	gap, netGap time.Duration            // of a site, and of all sites together; 0: not checked
	most        int                      // fetches at a time
	status      func(site string) string // how a fetch ends, as in DONE
	takes       func(site string) time.Duration

	mu     sync.Mutex // guards all below
	open   map[string]int
	all    int
	pages  map[string]int
	total  int
	wrongs []string
}

// work takes lines until the connection ends.
func (s *sitesSpider) work(t *testing.T, addr string) {
	sp := dialSpider(t, addr)
	for lines := bufio.NewScanner(sp.in); lines.Scan(); {
		f := strings.Fields(lines.Text())
		u, err := url.Parse(f[3])
		if err != nil {
			continue
		}
		site := u.Hostname()
		s.begin(site)
		time.AfterFunc(s.takes(site), func() {
			s.end(site)
			fmt.Fprintf(sp.conn, "%s DONE %s\n", f[0], s.status(site))
		})
	}
}

func (s *sitesSpider) begin(site string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[site]++
	s.pages[site]++
	s.all++
	s.total++
	since := time.Since(s.began)
	if s.open[site] > 1 {
		s.wrongs = append(s.wrongs, site+" has two open requests")
	}
	if s.all > s.most {
		s.wrongs = append(s.wrongs, fmt.Sprintf("%d requests are open", s.all))
	}
	if least := time.Duration(s.pages[site]-1) * s.gap; since < least {
		s.wrongs = append(s.wrongs, fmt.Sprintf("%s is asked for the %dth time after %v", site, s.pages[site], since))
	}
	if least := time.Duration(s.total-1) * s.netGap; since < least {
		s.wrongs = append(s.wrongs, fmt.Sprintf("%d requests left within %v", s.total, since))
	}
}

func (s *sitesSpider) end(site string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[site]--
	s.all--
}

// fetched returns how many pages of a site were asked for.
func (s *sitesSpider) fetched(site string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages[site]
}

func (s *sitesSpider) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, text := range s.wrongs {
		if t.Error(text); i == 5 {
			t.Fatalf("and %d others", len(s.wrongs)-6)
		}
	}
}

// serveSites answers requests on all addresses of the loopback network, at one port.
func serveSites(t *testing.T, robots func(host string) string) (port string) {
	t.Helper()
	return serveWeb(t, "0.0.0.0:0", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		fmt.Fprint(w, robots(host))
	})
}

const sitesBase = `Req_Host_Per_Sec = 200
Req_Host_Concurrent = 20
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
resolver.servers = [%q]
resolver.allow_networks = ["127.0.0.0/8"]
resolver.family = "ipv4"
resolver.min_ttl = "0s"
politeness.site_per_sec = 5
politeness.site_concurrent = 1
%s
`

func put(t *testing.T, d *daemon, sites []string, port string, from, pages int) {
	t.Helper()
	var text strings.Builder
	for _, site := range sites {
		for n := range pages {
			fmt.Fprintf(&text, "http://%s:%s/%d\n", site, port, from+n)
		}
	}
	command(t, text.String(), "put", "--at", d.at, "-").want(t, 0, `"invalid":0`, "")
}

// untilDone waits until so many documents have ended as done.
func untilDone(t *testing.T, d *daemon, want int) {
	t.Helper()
	var now struct{ Outcomes map[string]int }
	for deadline := time.Now().Add(patience); now.Outcomes["done"] < want; time.Sleep(20 * time.Millisecond) {
		got := command(t, "", "status", "--json", "--at", d.at)
		if err := json.Unmarshal([]byte(got.out), &now); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v; status %s", err, got.out)
		}
	}
}

// TestNeighboursOfTroubledSites crawls 30 sites at one address, beside one with a Crawl-delay of an
// hour, and one that answers 503 with a Retry-After of an hour. The 30 sites are fetched; the two
// others are left alone, also after a restart.
func TestNeighboursOfTroubledSites(t *testing.T) {
	t.Parallel() // it mostly waits
	const slow, closed = "slow.test", "closed.test"
	port := serveSites(t, func(host string) string {
		if host == slow {
			return "User-agent: *\nCrawl-delay: 3600\n"
		}
		return ""
	})
	names := serveNames(t, func(string) string { return "127.0.0.2" })
	file := write(t, "urlserver.toml", fmt.Sprintf(sitesBase, names, fmt.Sprintf(
		"docindex.kind = \"disk\"\ndocindex.path = %q\n", filepath.Join(t.TempDir(), "db"))))
	var sites []string
	for i := range 30 {
		sites = append(sites, fmt.Sprintf("s%d.test", i))
	}
	run := func(from, wantClosed int) {
		t.Helper()
		sp := &sitesSpider{began: time.Now(), gap: 200 * time.Millisecond, netGap: 5 * time.Millisecond, most: 20,
			open: map[string]int{}, pages: map[string]int{},
			takes: func(string) time.Duration { return 10 * time.Millisecond },
			status: func(site string) string {
				if site == closed {
					return "503 3600"
				}
				return "200"
			}}
		d := startDaemon(t, file)
		put(t, d, append([]string{slow, closed}, sites...), port, from, 4)
		worked := make(chan struct{})
		go func() { defer close(worked); sp.work(t, d.spiders) }()
		untilDone(t, d, len(sites)*4+wantClosed)
		if code, log := d.stop(); code != 0 {
			t.Errorf("exit status %d: %s", code, log)
		}
		<-worked
		sp.check(t)
		for _, site := range sites {
			if n := sp.fetched(site); n != 4 {
				t.Errorf("%s: %d pages; want 4", site, n)
			}
		}
		if n := sp.fetched(slow); n != 0 { // its robots.txt was asked for less than an hour ago
			t.Errorf("%d pages of the site with a Crawl-delay were asked for", n)
		}
		if n := sp.fetched(closed); n != wantClosed {
			t.Errorf("%d pages of the site with Retry-After were asked for; want %d", n, wantClosed)
		}
	}
	run(0, 1)
	run(4, 0)
}

// slotGroups returns the groups of the slots, of which there is at least one soon.
func slotGroups(t *testing.T, d *daemon) (groups []string) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(groups) == 0; time.Sleep(20 * time.Millisecond) {
		_, text := d.ask("GET", "/api/slots", "")
		var page struct{ Slots []struct{ Group string } }
		if err := json.Unmarshal([]byte(text), &page); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v; slots %s", err, text)
		}
		for _, s := range page.Slots {
			groups = append(groups, s.Group)
		}
	}
	return groups
}

// TestSharedNetworkOverSockets crawls 60 sites on a shared network. Each look-up gives one of 32
// addresses. Never are more than 20 requests open, or more than 50 a second sent; no site has two
// open, or more than five a second.
func TestSharedNetworkOverSockets(t *testing.T) {
	t.Parallel() // it mostly waits
	port := serveSites(t, func(string) string { return "" })
	names := serveNames(t, func(string) string {
		return netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + rand.IntN(32))}).String()
	})
	file := write(t, "urlserver.toml", fmt.Sprintf(sitesBase, names,
		"[[rules]]\nnetworks = [\"127.0.0.0/24\"]\nshared = true\nper_sec = 50\nconcurrent = 20\n"))
	sp := &sitesSpider{began: time.Now(), gap: 200 * time.Millisecond, netGap: 20 * time.Millisecond, most: 20,
		open: map[string]int{}, pages: map[string]int{},
		takes:  func(string) time.Duration { return 50 * time.Millisecond },
		status: func(string) string { return "200" }}
	d := startDaemon(t, file)
	var sites []string
	for i := range 60 {
		sites = append(sites, fmt.Sprintf("n%d.test", i))
	}
	put(t, d, sites, port, 0, 3)
	go sp.work(t, d.spiders)
	groups := slotGroups(t, d)
	untilDone(t, d, len(sites)*3)
	sp.check(t)
	for _, group := range groups {
		if !strings.HasSuffix(group, ".test") {
			t.Errorf("a slot has the group %s; want a site", group)
		}
	}
	for _, site := range sites {
		if n := sp.fetched(site); n != 3 {
			t.Errorf("%s: %d pages; want 3", site, n)
		}
	}
	if resp, text := d.ask("GET", "/api/hosts/n1.test", ""); resp.StatusCode != 200 ||
		!strings.Contains(text, `"address":{"name":"127.0.0.0/24"`) || !strings.Contains(text, `"group":"n1.test"`) {
		t.Errorf("/api/hosts/n1.test: %d %s; want the shared network", resp.StatusCode, text)
	}
}
