package demo

import (
	"fmt"
	"net/http"
	"time"
)

// tolerance is how much too early a request may arrive. It covers the time from the daemon's
// decision until the write; the time from there to the web server is measured.
const tolerance = 2 * time.Millisecond

// maxBackoff bounds the growth of the gap after 429 and 503, as a multiple of the ordinary gap.
const maxBackoff = 64

// pace checks the requests to one address, or to one site, in the order in which they arrive.
type pace struct {
	gap     time.Duration // by the rate
	delay   time.Duration // the site's Crawl-delay, once the crawler knows it
	backoff time.Duration // the gap after 429 and 503

	last time.Time // when the last request arrived; zero: there was none
	left time.Time // when the daemon sent it

	open, most   int // open requests now, and the most at once
	pages        int // requests for documents
	tight        pair
	late         int           // requests that arrived early only because the one before was delayed
	longest      time.Duration // longest time from daemon to web server
	broken, over int           // gaps that were too short; requests while another was open
}

// pair is two consecutive requests.
type pair struct {
	seen    time.Duration // time between their arrivals
	left    time.Duration // time from when the first was sent, if known, to the arrival of the second
	allowed time.Duration
}

func (p pair) isTighter(q pair) bool {
	return q.allowed == 0 || float64(p.seen)/float64(p.allowed) < float64(q.seen)/float64(q.allowed)
}

// arrival is a request that arrives.
type arrival struct {
	at    time.Time
	left  time.Time     // when the daemon sent it; at, if that is not known
	delay time.Duration // Crawl-delay of its host, if it is for a document: the crawler has read robots.txt then
	page  bool
}

// allowed returns the least time between the last request and the next one.
func (p *pace) allowed() time.Duration { return max(p.gap, p.delay, p.backoff) }

// arrive records a request. It returns a fault, or "" if the request keeps the gap and no other one
// is open.
//
// The daemon keeps the gap between requests when it sends them. If a request is delayed on its way,
// the next one seems too early. So a gap counts from when the request before was sent, if that is
// known.
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
		return fmt.Sprintf("asked %v after the request before, %v is allowed", round(now.seen),
			round(now.allowed))
	}
	return ""
}

// end records that a request was answered. After 429 and 503 the gap doubles, and is at least the
// Retry-After; any other answer halves it.
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
