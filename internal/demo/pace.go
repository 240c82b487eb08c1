package demo

import (
	"fmt"
	"net/http"
	"time"
)

// tolerance is how much too early a request may be. It covers what the daemon takes from its
// decision to the wire; the way from there to the web server is measured.
const tolerance = 2 * time.Millisecond

// maxBackoff is how many times the ordinary gap grows at most after 429 and 503.
const maxBackoff = 64

// pace watches the requests that one address sees, in the order in which they arrive.
type pace struct {
	gap     time.Duration // of the rate
	delay   time.Duration // the longest Crawl-delay that the crawler knows of hosts here
	backoff time.Duration // after 429 and 503

	last time.Time // when the request before arrived; zero: there was none
	left time.Time // when that one left the daemon

	open, most   int // requests at once, and the most of them
	pages        int // requests for documents
	tight        pair
	late         int           // requests that came early only because the one before was late
	longest      time.Duration // on the way from daemon to web server
	broken, over int           // gaps too short; requests over the one that may be open
}

// pair is two requests, one after the other.
type pair struct {
	seen    time.Duration // between their arrivals
	left    time.Duration // from when the first left the daemon, where that is known, to the arrival of the second
	allowed time.Duration
}

func (p pair) isTighter(q pair) bool {
	return q.allowed == 0 || float64(p.seen)/float64(p.allowed) < float64(q.seen)/float64(q.allowed)
}

// arrival is a request as an address sees it.
type arrival struct {
	at    time.Time
	left  time.Time     // when the daemon let it go; at, where that is not known
	delay time.Duration // Crawl-delay of its host, if it is for a document: then the crawler has read robots.txt
	page  bool
}

// allowed is how long after the request before the next one may come.
func (p *pace) allowed() time.Duration { return max(p.gap, p.delay, p.backoff) }

// arrive takes a request in. The fault is "" where it came no sooner than allowed after the one
// before, and as the only one.
//
// The daemon keeps the gap between requests as they leave it. One that is held up on its way makes
// the next one look early, so a gap counts from when the one before left, if that is known.
func (p *pace) arrive(a arrival) (fault string) {
	p.delay = max(p.delay, a.delay)
	if a.page {
		p.pages++
	}
	if !p.last.IsZero() {
		fault = p.judge(a.at)
	}
	p.open++
	if p.most = max(p.most, p.open); p.open > 1 {
		p.over++
		fault = fmt.Sprintf("%d requests open at once", p.open)
	}
	p.longest = max(p.longest, a.at.Sub(a.left))
	p.last, p.left = a.at, a.left
	return fault
}

func (p *pace) judge(at time.Time) (fault string) {
	now := pair{seen: at.Sub(p.last), left: at.Sub(p.left), allowed: p.allowed()}
	if now.isTighter(p.tight) {
		p.tight = now
	}
	switch least := now.allowed - tolerance; {
	case now.seen >= least:
	case now.left >= least:
		p.late++
	default:
		p.broken++
		return fmt.Sprintf("asked %v after the request before, %v is allowed", round(now.seen), round(now.allowed))
	}
	return ""
}

// end takes in that a request has been answered. After 429 and 503 the gap doubles and is at least
// what Retry-After asks for; any other answer halves it back.
func (p *pace) end(status int, retryAfter time.Duration) {
	p.open--
	base := max(p.gap, p.delay)
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		doubled := min(2*max(base, p.backoff), maxBackoff*base)
		p.backoff = max(doubled, retryAfter, p.backoff)
		return
	}
	if p.backoff /= 2; p.backoff <= base {
		p.backoff = 0
	}
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
