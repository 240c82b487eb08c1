package sim

import (
	"net/netip"
	"strings"
	"time"
)

// robotsAnswer is what a web server says to a request for robots.txt.
type robotsAnswer struct {
	status   int
	location string
	retry    time.Duration
	rules    bool // disallows /private/
	delay    time.Duration
	habit    uint8 // robotsHuge, robotsCostly: there is more in it, which means nothing
}

// robotsState is what is known of an origin's robots.txt.
type robotsState struct {
	state   robotsKind
	until   time.Duration
	rules   bool
	costly  bool // a verdict by it takes long
	delay   time.Duration
	used    bool          // a document was sent since
	misses  int           // in a row: fetches that nobody answered
	missing time.Duration // since the first of them
	noted   bool          // the index keeps a note of the last file
	unread  time.Duration // the Crawl-delay of that note, which the daemon has not read since it started
}

type robotsKind uint8

const (
	notAsked robotsKind = iota
	read
	absent
	silent // no answer, and no older file: all is forbidden
	stale
)

const maxHops = 5

// robotsFetch is a fetch of an origin's robots.txt over its redirects.
type robotsFetch struct {
	origin *origin
	url    string // requested, or to be requested next
	host   *host  // of url
	to     target // asked now
	sent   time.Duration
	hops   int

	redirected time.Duration // when it was, to url
	hopeless   bool          // the name of host had failed for so long then that it may have been given up at once
}

// fetch checks a request for robots.txt.
func (o *oracle) fetch(id uint32, url string, addr netip.Addr) {
	o.report.Fetches++
	t := o.fetches[id]
	if t == nil && o.blockedFetches[id] != nil { // the host is not blocked any longer
		t = o.blockedFetches[id]
		delete(o.blockedFetches, id)
		delete(o.ended, id)
		o.fetches[id] = t
		t.origin.host.fetching++
	}
	if t == nil {
		if _, over := o.ended[id]; over {
			o.wrong(RuleRobots, "fetch %d goes on to %s after its end", id, url)
		}
		t = &robotsFetch{origin: o.origin(url), url: url}
		if s := &t.origin.robotsState; s.noted && (s.state == read || s.state == absent) && o.now < s.until-noteAge {
			o.wrong(RuleNotes, "fetch %d of %s, of which a note is in force until %v", id, url, s.until)
		}
		o.abandoned(t.origin)
		o.superseded(t.origin)
		t.host, t.origin.lastFetch = t.origin.host, id
		o.fetches[id] = t
		t.origin.host.fetching++
		if want := url[:targetAt(url)] + "/robots.txt"; url != want {
			o.wrong(RuleRobots, "fetch %d begins at %s, not at %s", id, url, want)
		}
	}
	if t.url != url || t.asks() {
		o.wrong(RuleRobots, "fetch %d: request for %s, not for %s", id, url, t.url)
	}
	t.to.site = &t.host.level // it waits no longer
	g := o.bind(t.host, addr)
	t.to, t.sent = o.request(t.host, g, o.now), o.now
}

// fetched records the answer.
func (o *oracle) fetched(id uint32, a robotsAnswer) {
	t := o.fetches[id]
	to := t.to
	t.to = target{}
	o.finished(t.host, to, o.now-t.sent, a.status, a.retry)
	last := t.host
	last.told = max(last.told, last.floor)
	if a.status >= 301 && a.status <= 308 && a.location != "" && t.hops < maxHops {
		t.hops++
		t.url = a.location
		t.host = o.host(hostOf(a.location[:targetAt(a.location)]))
		t.redirected, t.hopeless = o.now, o.hopeless(t.host)
		o.endBlocked(t.host)
	} else {
		o.settle(id, t, a)
	}
	o.closed(last, to)
}

// noteAge is how much older than it is a note may count: its time is in whole seconds.
const noteAge = time.Second

// noted records that the index keeps a note of what the robots.txt of an origin has just said.
func (o *oracle) noted(origin string) { o.origin(origin + "/").noted = true }

// asks reports whether a request is open.
func (t *robotsFetch) asks() bool { return t.to.site != nil }

// abandoned ends the last fetch of an origin if it waited for a host whose name the daemon may have
// given up since. The caller has seen that the daemon continues with the origin. The oracle does
// not know when the daemon gave the name up, and assumes the moment that allows the daemon more.
func (o *oracle) abandoned(from *origin) {
	t := o.fetches[from.lastFetch]
	if t == nil || t.asks() {
		return
	}
	first, last := t.host.givenUp[0], t.host.givenUp[1]
	if !t.hopeless && last <= t.redirected {
		return
	}
	o.settle(from.lastFetch, t, robotsAnswer{})
	from.until = max(last, t.redirected) + o.set.errorTTL
	if from.misses == 1 {
		from.missing = max(first, t.redirected)
	}
}

// superseded ends the last fetch of an origin if it has no request open, as the daemon begins
// another one. What the origin's robots.txt says is known when that ends.
func (o *oracle) superseded(from *origin) {
	id := from.lastFetch
	if t := o.fetches[id]; t != nil && !t.asks() {
		delete(o.fetches, id)
		o.ended[id] = struct{}{}
		from.host.fetching--
		o.release(from.host)
	}
}

// endUnresolved ends the fetches whose next request is to a host that has no address.
func (o *oracle) endUnresolved(h *host) {
	for id, t := range o.fetches { // each is settled the same, whatever the order
		if t.host == h && !t.asks() {
			o.settle(id, t, robotsAnswer{})
		}
	}
}

// endBlocked ends the fetches that were redirected to a blocked host other than their first one.
// The daemon may learn only later that a rule names the host. If the block has ended by then, the
// fetch continues.
func (o *oracle) endBlocked(h *host) {
	addr := h.resolvedTo
	if h.at != nil {
		addr = h.addr
	}
	left := max(0, h.blocked[1]-o.now)
	if left == 0 && !o.set.rulingOf(h.name, addr).block {
		return
	}
	for id, t := range o.fetches { // each is settled the same, whatever the order
		if t.host == h && !t.asks() && t.origin.host != h {
			o.settle(id, t, robotsAnswer{retry: left})
			o.blockedFetches[id] = t
		}
	}
}

// settle ends a fetch and updates the robots.txt of its origin.
func (o *oracle) settle(id uint32, t *robotsFetch, a robotsAnswer) {
	delete(o.fetches, id)
	o.ended[id] = struct{}{}
	s := &t.origin.robotsState
	switch {
	case a.status >= 200 && a.status < 300:
		*s = robotsState{state: read, rules: a.rules, costly: a.habit == robotsCostly,
			delay: min(a.delay, o.set.maxCrawlDelay), until: o.now + o.set.robotsTTL}
	case a.status >= 300 && a.status < 500 && a.status != 429:
		*s = robotsState{state: absent, until: o.now + o.set.robotsTTL}
	default:
		s.used = false
		if s.misses == 0 {
			s.missing = o.now
		}
		s.misses++
		s.until = o.now + max(o.set.errorTTL, min(a.retry, retryMost))
		if s.state == read || s.state == stale {
			s.state = stale
		} else {
			*s = robotsState{state: silent, until: s.until, misses: s.misses, missing: s.missing}
		}
	}
	h := t.origin.host
	delay := time.Duration(0)
	for _, other := range h.origins {
		delay = max(delay, other.delay)
	}
	if delay != h.delay {
		h.delay, h.delayAt = delay, o.now
	}
	h.slow()
	h.fetching--
	o.release(h)
}

// forbidden reports whether robots.txt forbids a URL.
func (s *robotsState) forbidden(url string) bool {
	switch s.state {
	case notAsked, silent:
		return true
	case absent:
		return false
	}
	return s.rules && strings.HasPrefix(url[targetAt(url):], "/private/")
}

// mayFetch checks a document that is being sent.
func (o *oracle) mayFetch(from *origin, url string, since time.Duration) {
	if !o.set.robots {
		return
	}
	o.abandoned(from)
	s := &from.robotsState
	if s.state == notAsked || s.used && s.until <= since {
		o.wrong(RuleRobots, "%s is sent, and robots.txt was not asked for, or too long ago", url)
	}
	s.used = true
	if s.forbidden(url) {
		o.wrong(RuleRobots, "%s is sent, which robots.txt forbids", url)
	}
}
