package engine

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/internal/container/dense"
	"urlserver/internal/container/timeheap"
	"urlserver/internal/robots"
)

// robotsFetches has the robots.txt of all origins, and the fetches that are under way.
type robotsFetches struct {
	policy         robots.Policy
	agent          uint32 // grows with each change of robots.user_agent
	origins        dense.Array[origin]
	open           map[uint32]*robotsFetch // by number
	lastID         uint32
	retries        timeheap.Heap // origins whose documents wait until robots.txt is tried again
	limits         [hostslots.OwnQueues]fetchLimit
	cache          rulesCache
	verdicts       verdicts
	redirected     map[uint32][]uint32 // fetches that wait for a host other than their origin's, by that host
	blockedTargets map[uint32]string   // by origin: the blocked host that its robots.txt redirects to
	forgotten      []uint32            // a buffer
}

func newRobotsFetches() robotsFetches {
	return robotsFetches{
		open:           map[uint32]*robotsFetch{},
		limits:         newFetchLimits(),
		cache:          newRulesCache(),
		verdicts:       verdicts{notBefore: map[uint32]time.Duration{}},
		redirected:     map[uint32][]uint32{},
		blockedTargets: map[uint32]string{},
	}
}

// robotsFetch is the fetch of one origin's robots.txt, with its redirects.
type robotsFetch struct {
	origin  uint32
	route   robots.Fetch
	host    uint32 // of the request that is next or open
	started time.Duration
	agent   string   // the user agent that the rules are read for
	urls    [][]byte // of documents that wait for it
	via     []byte   // DOC_ID of the next document, if the file's sitemaps are to be put into the index; see noteVia
	try     hostslots.OwnQueue
	quick   bool // its request is open and not slow
}

// origin is what the engine knows of an origin's robots.txt: 64 bytes.
type origin struct {
	robots.Entry
	cachedRules
	agent    uint32 // the robotsFetches.agent that it was read for
	failures int32  // fetches in a row without an answer
	unused   bool   // no document was judged by the entry yet
	fromNote bool   // the entry was read from a note: it counts only while it is in force
}

// entry returns what is known of an origin, for the user agent in force.
func (r *robotsFetches) entry(id uint32) *origin {
	o := r.origins.At(id)
	if o.agent != r.agent {
		r.forgetOrigin(id)
	}
	return o
}

// startFetch starts to fetch the robots.txt of an origin, whose documents wait for it.
func (e *Engine) startFetch(origin uint32) {
	e.robots.lastID++
	t := &robotsFetch{
		origin: origin,
		host:   e.slots.HostOf(origin),
		route:  robots.NewFetch(string(e.slots.Origin(origin).Key())),
		agent:  e.cfg.Robots.UserAgent,
	}
	if e.robots.entry(origin).Failed() {
		t.try = hostslots.Retry
	}
	e.robots.open[e.robots.lastID] = t
	e.slots.Host(t.host).Pin()
	e.slots.Host(t.host).QueueOwnRequest(e.now, e.robots.lastID, t.try)
}

// startRequests starts requests for robots.txt whose groups may be requested.
func (e *Engine) startRequests(budget *int, due *waiter) {
	for try := range e.robots.limits {
		e.startRequestsOf(hostslots.OwnQueue(try), budget, due)
	}
}

func (e *Engine) startRequestsOf(try hostslots.OwnQueue, budget *int, due *waiter) {
	for {
		if wait, free := e.robots.limits[try].free(e.now, e.robots.open); !free {
			due.after(wait)
			return
		}
		for {
			host := e.slots.NextOwnRequestHost(e.now, try)
			if host == 0 || e.isBound(host) {
				break
			}
			if *budget--; *budget <= 0 {
				return
			}
		}
		id, addr, wait, ok := e.slots.NextOwnRequest(e.now, try)
		if !ok {
			due.after(wait)
			return
		}
		t := e.robots.open[id]
		t.started = e.now
		e.robots.limits[try].take(id, t, e.robots.open)
		e.robots.dropRedirected(id, t)
		e.stats.RobotsRequests++
		t.urls = e.waiting(t.origin)
		e.noteVia(t)
		f := Fetch{ID: id, URL: t.route.URL(), Addr: addr, Targets: targets(t.urls)}
		f.Start = max(e.slots.Host(t.host).GroupDue(), e.now+leastStart)
		if e.opt.Lease > 0 {
			f.By = e.slots.Host(t.host).LeasedUntil()
		}
		e.Out.Fetches = append(e.Out.Fetches, f)
	}
}

// leastStart is how long a request for robots.txt has at least to begin, however small the gaps are.
const leastStart = 250 * time.Millisecond

// FetchSent makes the gaps of one of Out.Fetches count from now. The owner calls it when the
// request leaves, which is some time after the owner took it from Out.Fetches, and before Fetched.
func (e *Engine) FetchSent(id uint32) {
	if t := e.robots.open[id]; t != nil {
		e.slots.Host(t.host).OwnRequestSent(e.now)
	}
}

// Fetched takes the answer to one of Out.Fetches.
func (e *Engine) Fetched(id uint32, resp robots.Response) {
	t := e.robots.open[id]
	e.robots.limits[t.try].leave(t)
	e.slots.Host(t.host).OwnRequestDone(e.now, hostslots.Feedback{
		Took: e.now - t.started, Status: resp.Status, RetryAfter: resp.RetryAfter,
	})

	if errors.Is(resp.Err, robots.ErrLate) || errors.Is(resp.Err, robots.ErrBusy) {
		// This process stood still, or lacks room.
		e.slots.Host(t.host).QueueOwnRequest(e.now, id, t.try)
		e.noteRedirected(id, t)
		e.endBlockedFetches(t.host) // it may be blocked since the request went out
		return
	}
	host := t.host
	next, final, done := t.route.Answer(resp)
	if done {
		e.finishFetch(id, final)
	} else {
		e.redirect(id, t, next)
	}
	e.keepPause(host)
	if of := e.slots.HostOf(t.origin); done && of != host {
		e.keepPause(of)
	}
}

// keepPause makes the doc index keep how long no request may be sent to a host, if that time, or
// the host's gap, is longer than usual. After a document the index gets this with the outcome, but
// a request for robots.txt has no outcome.
func (e *Engine) keepPause(host uint32) {
	e.learnBackoff(host)
	h := e.slots.Host(host)
	if wait, gap := h.RemainingWait(e.now); e.opt.Exact && (gap > 0 || wait > e.usualGap()) {
		e.Out.Pauses.Add(docindex.Outcome{URL: urlOf(h.Name()), Pause: wait, Gap: gap})
	}
}

// urlOf returns a URL of a host.
func urlOf(host []byte) []byte {
	if bytes.IndexByte(host, ':') >= 0 {
		return fmt.Appendf(nil, "http://[%s]/", host)
	}
	return fmt.Appendf(nil, "http://%s/", host)
}

// usualGap returns how long a host is left alone after a request where no rule says more.
func (e *Engine) usualGap() time.Duration {
	return gap(min(e.cfg.SitePace().PerSec, e.cfg.AddressPace().PerSec))
}

// redirect continues a fetch where a redirect leads, under the pace of the host there.
func (e *Engine) redirect(id uint32, t *robotsFetch, next robots.Fetch) {
	url, err := parse([]byte(next.URL()), e.cfg.Resolver.AllowPorts)
	if err != nil {
		e.finishFetch(id, unanswered(err))
		return
	}
	t.urls, t.route, t.host = nil, next, e.slots.EnsureHost(url.Host())
	e.slots.Host(t.host).Unbind(e.now) // to be resolved again, unless it is settled
	e.slots.Host(t.host).QueueOwnRequest(e.now, id, t.try)
	e.noteRedirected(id, t)
	if !e.slots.Host(t.host).Settled() {
		e.failIfKnown(t.host)
	}
	e.endBlockedFetches(t.host)
}

// finishFetch puts the result of a robots.txt fetch in force and lets the documents that wait for
// it go on.
func (e *Engine) finishFetch(id uint32, final robots.Response) {
	t := e.robots.open[id]
	delete(e.robots.open, id)
	delete(e.robots.blockedTargets, t.origin)
	e.applyRobots(t.origin, final, t.urls, e.now)
	entry := e.robots.entry(t.origin)
	e.putSitemaps(t, entry)
	if t.agent == e.cfg.Robots.UserAgent {
		e.learn(t.origin)
	} else { // robots.user_agent has changed since
		e.robots.forgetOrigin(t.origin)
	}
	e.stats.Robots[entry.State()]++
	host := e.slots.HostOf(t.origin)
	e.updateCrawlDelay(host)
	e.slots.Origin(t.origin).SetRobotsPending(e.now, false)
	e.slots.Host(host).Unpin()
}

// updateCrawlDelay sets the Crawl-delay of a host: the longest that its origins ask for.
func (e *Engine) updateCrawlDelay(host uint32) {
	delay := time.Duration(0)
	e.slots.Host(host).Origins(func(o uint32) { delay = max(delay, e.robots.entry(o).CrawlDelay()) })
	e.slots.Host(host).SetCrawlDelay(e.now, delay)
}

// dropFetch ends a fetch that has made no request. What is known of its origin stays as it is.
func (e *Engine) dropFetch(id uint32) {
	t := e.robots.open[id]
	delete(e.robots.open, id)
	e.slots.Origin(t.origin).SetRobotsPending(e.now, false)
	e.slots.Host(t.host).Unpin()
}

// retryRobots lets documents go on whose robots.txt failed, once it is to be tried again. They end
// after spider.max_attempts tries in a row.
func (e *Engine) retryRobots() {
	for {
		id, at, ok := e.robots.retries.Min()
		if !ok || at > e.now && e.cfg.Robots.Enabled { // robots.txt may have been switched off since
			return
		}
		e.robots.retries.Remove(id)
		e.slots.Origin(id).SetRobotsPending(e.now, false)
	}
}

func unanswered(err error) robots.Response {
	return robots.Response{Err: fmt.Errorf("robots.txt: %w", err)}
}
