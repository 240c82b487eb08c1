package demo

import (
	"net/http"
	"net/netip"

	"github.com/nlnwa/whatwg-url/url"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// plan is the expected result of a crawl. It is found by following links without the daemon.
type plan struct {
	ends     map[string]docindex.Kind // how each linked URL has to end
	requests map[string]int           // how often web servers have to receive each request, including robots.txt
	pages    int                      // number of documents to be fetched
}

// expectedCrawl follows all links from w's seeds.
func expectedCrawl(w *web) plan {
	k := walker{web: w, met: map[*host]bool{}, plan: plan{ends: map[string]docindex.Kind{},
		requests: map[string]int{}}}
	for _, seed := range w.seeds {
		k.meet(seed)
	}
	for len(k.queue) > 0 {
		u := k.queue[0]
		k.queue = k.queue[1:]
		k.visit(u)
	}
	k.askRobots()
	return k.plan
}

type walker struct {
	plan
	web   *web
	queue []weburl.URL
	met   map[*host]bool // hosts that were linked to and have a site
}

// meet handles a link: it decides once how the URL has to end.
func (k *walker) meet(link string) {
	u, err := weburl.Parse([]byte(link))
	if err != nil || !protocol.ValidURL(u.Text()) {
		return
	}
	if _, known := k.ends[string(u.Text())]; known || outside(u.Host(), k.web) {
		return
	}
	h := k.web.find(u)
	switch {
	case k.web.names[string(u.Host())] == nil:
		k.ends[string(u.Text())] = docindex.DNS
	case h == nil || h.site == nil: // nobody answers, so robots.txt cannot be read
		k.ends[string(u.Text())] = docindex.Robots
	case h.site.forbids(string(u.Target())):
		k.ends[string(u.Text())] = docindex.Robots
		k.met[h] = true
	default:
		k.ends[string(u.Text())] = docindex.Done
		k.met[h] = true
		k.queue = append(k.queue, u)
	}
}

// outside reports whether name is the IP address of a machine outside the demo. Nobody follows such
// links. Names outside this web have no address.
func outside(name []byte, w *web) bool {
	_, err := netip.ParseAddr(string(name))
	return err == nil && w.names[string(name)] == nil
}

func (k *walker) visit(u weburl.URL) {
	k.pages++
	k.requests[request(u)]++
	a := k.web.find(u).site.answer(string(u.Target()))
	base, err := url.Parse(string(u.Text()))
	if err != nil {
		return
	}
	for _, link := range links(base, a) {
		k.meet(link)
	}
}

const robotsHops = 5 // redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2)

// askRobots counts the requests for robots.txt: one per host, more if it cannot be read, and the
// requests that its redirects cause.
func (k *walker) askRobots() {
	for h := range k.met {
		next := origin(h.name, k.web.port) + "/robots.txt"
		for range 1 + robotsHops {
			u, err := weburl.Parse([]byte(next))
			if err != nil {
				break
			}
			to := k.web.find(u)
			if to == nil || to.site == nil {
				break
			}
			a := to.site.answer(string(u.Target()))
			k.requests[request(u)]++
			if a.status >= http.StatusInternalServerError {
				k.requests[request(u)] += configs.Default().Spider.MaxAttempts - 1
			}
			if a.location == "" {
				break
			}
			next = a.location
		}
	}
}
