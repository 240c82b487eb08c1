package demo

import (
	"net/netip"
	"strconv"
	"time"

	"urlserver/internal/weburl"
)

// answer is what a host always answers to one request.
type answer struct {
	status     int
	kind       string // Content-Type; "": none
	location   string // target of a redirect
	retryAfter int    // seconds; 0: not sent
	robotsTag  string // X-Robots-Tag; "": not sent
	body       []byte
	takes      time.Duration // before the answer begins
}

// site is what a host serves. The web servers and expectedCrawl use the same site, so the plan is
// found without the daemon. Safe for concurrent use.
type site interface {
	// answer takes path and query as in the request line.
	answer(target string) answer
	// forbids reports whether robots.txt forbids target for a crawler named agent.
	forbids(target string) bool
	// delay returns the Crawl-delay of robots.txt.
	delay() time.Duration
}

// agent is the product token of daemon and spider.
const agent = "urlserver"

// host is a name and its address. If it has no site, connections are refused.
type host struct {
	name string
	addr netip.Addr
	site site
}

// web is everything that can be crawled. Immutable.
type web struct {
	title string
	port  uint16 // of all hosts
	hosts []host
	seeds []string // where the crawl begins
	names map[string]*host
}

func newWeb(title string, port uint16, hosts []host) *web {
	w := &web{title: title, port: port, hosts: hosts, names: map[string]*host{}}
	for i := range w.hosts {
		w.names[w.hosts[i].name] = &w.hosts[i]
	}
	return w
}

// addrs returns the addresses of all hosts, each once, in the order of the hosts.
func (w *web) addrs() (addrs []netip.Addr) {
	seen := map[netip.Addr]bool{}
	for _, h := range w.hosts {
		if !seen[h.addr] {
			seen[h.addr] = true
			addrs = append(addrs, h.addr)
		}
	}
	return addrs
}

// longestDelay returns the longest Crawl-delay of all hosts.
func (w *web) longestDelay() (longest time.Duration) {
	for _, h := range w.hosts {
		if h.site != nil {
			longest = max(longest, h.site.delay())
		}
	}
	return longest
}

// find returns the host that serves u, or nil if no host has its name and port.
func (w *web) find(u weburl.URL) *host {
	if u.Port() != w.port || string(u.Scheme()) != "http" {
		return nil
	}
	return w.names[string(u.Host())]
}

// origin returns scheme, host and port of a host's URLs.
func origin(name string, port uint16) string {
	return "http://" + name + ":" + strconv.Itoa(int(port))
}

// request returns the key under which requests are counted: the part of a URL that a web server
// receives.
func request(u weburl.URL) string { return string(u.Origin()) + string(u.Target()) }

// loopback returns address n of the demo, from 1 to 253. It differs from 127.0.0.1, where other
// servers of this machine may listen.
func loopback(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 77, 0, byte(n)}) }

const maxAddrs = 253
