package demo

import (
	"net/netip"
	"strconv"
	"time"

	"urlserver/internal/weburl"
)

// answer is what a host answers to one request, always the same.
type answer struct {
	status     int
	kind       string // Content-Type; "": none
	location   string // where a redirect leads
	retryAfter int    // seconds; 0: not sent
	robotsTag  string // X-Robots-Tag; "": not sent
	body       []byte
	takes      time.Duration // before the answer begins
}

// site is what a host serves. Web server and walk ask the same one, so that the walk knows what can
// be found without asking the daemon. Safe for concurrent use.
type site interface {
	// answer takes path and query as they stand in the request line.
	answer(target string) answer
	// forbids tells if robots.txt keeps a crawler named agent from target.
	forbids(target string) bool
	// delay is the Crawl-delay of robots.txt.
	delay() time.Duration
}

// agent is the product token of daemon and spider.
const agent = "urlserver"

// host is a name on an address. One without a site has nobody who answers: connections are refused.
type host struct {
	name string
	addr netip.Addr
	site site
}

// web is all that can be crawled. Immutable.
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

// addrs are the addresses of all hosts, each once, in the order of the hosts.
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

// longestDelay is the longest Crawl-delay of all hosts.
func (w *web) longestDelay() (longest time.Duration) {
	for _, h := range w.hosts {
		if h.site != nil {
			longest = max(longest, h.site.delay())
		}
	}
	return longest
}

// find returns the host that serves u; nil where there is none, for its name or its port.
func (w *web) find(u weburl.URL) *host {
	if u.Port() != w.port || string(u.Scheme()) != "http" {
		return nil
	}
	return w.names[string(u.Host())]
}

// origin is the front of the URLs of a host.
func origin(name string, port uint16) string {
	return "http://" + name + ":" + strconv.Itoa(int(port))
}

// request is the key under which requests are counted: what of a URL a web server gets to see.
func request(u weburl.URL) string { return string(u.Origin()) + string(u.Target()) }

// loopback is address n of the demo, counted from 1; there are 253. It stays away from 127.0.0.1,
// where other servers of this machine are.
func loopback(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 77, 0, byte(n)}) }

const maxAddrs = 253
