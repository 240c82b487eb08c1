package demo

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"urlserver/internal/weburl"
)

// oracle judges a crawl by the requests that the web servers receive. Of the daemon it knows only
// when lines were sent. Safe for concurrent use.
type oracle struct {
	web *web
	now func() time.Time

	mu       sync.Mutex // guards all below; held for memory work only
	paces    map[netip.Addr]*pace
	sites    map[string]*pace     // by host name
	left     map[string]time.Time // when requests were sent by the daemon that have not arrived yet
	requests map[string]int       // received by web servers, by request
	impolite faults
}

func newOracle(w *web, gap time.Duration) *oracle {
	o := &oracle{
		web: w, now: time.Now,
		paces: map[netip.Addr]*pace{},
		sites: map[string]*pace{}, left: map[string]time.Time{}, requests: map[string]int{},
	}
	for _, addr := range w.addrs() {
		o.paces[addr] = &pace{gap: gap}
	}
	for _, h := range w.hosts {
		o.sites[h.name] = &pace{gap: gap}
	}
	return o
}

// faults counts faults, and keeps the first ones.
type faults struct {
	first []string
	count int
}

const shown = 10 // faults of one kind in a report

func (f *faults) addf(format string, args ...any) {
	if f.count++; len(f.first) < shown {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

// sent records that the daemon sends a URL.
func (o *oracle) sent(raw []byte) {
	u, err := weburl.Parse(raw)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left[request(u)] = o.now()
}

// arrive records a request to h that arrives at addr. The caller calls end before it writes the
// last byte of the answer, so that the client cannot have the whole answer earlier.
func (o *oracle) arrive(addr netip.Addr, h *host, target string) (end func(a answer)) {
	key := origin(h.name, o.web.port) + target
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests[key]++
	a := arrival{at: o.now()}
	a.left, a.page = o.left[key]
	delay := time.Duration(0)
	if a.page {
		delete(o.left, key)
		delay = h.site.delay()
	} else {
		a.left = a.at
	}
	p, site := o.paces[addr], o.sites[h.name]
	if p == nil || addr != h.addr {
		o.impolite.addf("%s asked at %v, its address is %v", key, addr, h.addr)
		return func(answer) {}
	}
	fault := p.arrive(a)
	a.delay = delay
	if f := site.arrive(a); fault == "" {
		fault = f
	}
	if fault != "" {
		o.impolite.addf("%v: %s: %s", addr, key, fault)
	}
	return func(a answer) {
		o.mu.Lock()
		defer o.mu.Unlock()
		p.end(http.StatusOK, 0) // what one site answers does not bind its address
		site.end(a.status, time.Duration(a.retryAfter)*time.Second)
	}
}

// verdict is the difference between the requests received and the plan.
type verdict struct {
	impolite faults // too early, too many at once, at the wrong address
	missed   faults // reachable, and not fetched
	repeated faults // fetched more than once
	stray    faults // fetched without a link, or against robots.txt
}

// judge compares the requests with a plan. If whole is false, the crawl was ended early, and no
// request counts as missed.
func (o *oracle) judge(p plan, whole bool) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := verdict{impolite: o.impolite}
	all := map[string]int{} // the keys of both maps
	maps.Copy(all, p.requests)
	maps.Copy(all, o.requests)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		switch want, seen := p.requests[key], o.requests[key]; {
		case want == 0:
			v.stray.addf("%s", key)
		case seen > want:
			v.repeated.addf("%s: %d times", key, seen)
		case seen < want && whole:
			v.missed.addf("%s", key)
		}
	}
	return v
}

// row is a line of the table: what the oracle knows of an address. Its tightest pair is that of the
// address or of one of its sites.
type row struct {
	addr  netip.Addr
	hosts int
	pace
}

// rows returns a row for each address, in the order of the web.
func (o *oracle) rows() (rows []row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, addr := range o.web.addrs() {
		r := row{addr: addr, pace: *o.paces[addr]}
		for _, h := range o.web.hosts {
			if h.addr != addr {
				continue
			}
			r.hosts++
			if s := o.sites[h.name]; s.tight.allowed > 0 && s.tight.isTighter(r.tight) {
				r.tight = s.tight
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// counts returns the number of requests so far: pages for documents, others for robots.txt and its
// redirects.
func (o *oracle) counts() (pages, others int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.paces {
		pages += p.pages
	}
	for _, n := range o.requests {
		others += n
	}
	return pages, others - pages
}

// list writes the faults, which are of one kind, in lines; "" if there are none.
func (f faults) list(what string) string {
	if f.count == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d):\n", what, f.count)
	for _, text := range f.first {
		fmt.Fprintf(&b, "  %s\n", text)
	}
	if more := f.count - len(f.first); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	return b.String()
}
