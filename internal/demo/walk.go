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

// plan is what a crawl of a web has to come to, found out by following links without the daemon.
type plan struct {
	ends     map[string]docindex.Kind // how each URL that is linked to has to end
	requests map[string]int           // how often web servers have to see each request; robots.txt is among them
	pages    int                      // documents to be fetched
}

// walk follows all links from w's seeds.
func walk(w *web) plan {
	k := walker{web: w, met: map[*host]bool{}, plan: plan{ends: map[string]docindex.Kind{}, requests: map[string]int{}}}
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

// meet takes a link in: it decides how the URL has to end, once.
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
	case h == nil || h.site == nil: // nobody listens, so robots.txt cannot be had
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

// outside tells if name is the IP address of some machine that has nothing to do with the demo.
// Such links are not followed by anybody; names that are not of this web just have no address.
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

// askRobots counts the requests for robots.txt: one a host, more where it could not be had, and
// what it redirects to.
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
