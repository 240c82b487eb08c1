package robots

import (
	"net/http"
	"time"
)

// Response is the answer to one request for a robots.txt.
type Response struct {
	Status     int           // 0: no answer
	Location   string        // where a redirect leads: absolute, http or https; "" if it is unusable
	Body       []byte        // of a 2xx, cut to what the client reads
	RetryAfter time.Duration // as asked for, at most an hour; 0: not asked for
	Err        error         // why there is no answer

	rules    *Rules // Body, read ahead of Settle
	verdicts []bool
}

// class is what a status means for robots.txt (RFC 9309, section 2.3.1).
type class uint8

const (
	unreachable class = iota
	unavailable
	answered
)

func classOf(status int) class {
	switch {
	case status == http.StatusTooManyRequests:
		return unreachable
	case status >= 200 && status < 300:
		return answered
	case status >= 300 && status < 500:
		return unavailable
	}
	return unreachable
}

// Policy says how long answers hold. Times that its methods take and return are monotonic, since
// the daemon's start. It is a value without state.
type Policy struct {
	Agent         string        // the User-Agent; its product token finds the group
	TTL           time.Duration // how long an answer holds; RFC 9309 asks for 24 hours at most
	ErrorTTL      time.Duration // after an error, the pause before the next try
	MaxCrawlDelay time.Duration // a longer Crawl-delay is taken for this one
}

// maxRetryAfter bounds how long a server can put off the next try.
const maxRetryAfter = time.Hour

// Read parses the body of resp ahead of [Policy.Settle], and judges documents by it as
// [Rules.AllowedAll] does, for those who settle where time is dear. What is read is not read again.
func (p Policy) Read(resp Response, targets ...[]byte) Response {
	if classOf(resp.Status) == answered && resp.rules == nil {
		resp.rules = Parse(resp.Body, p.Agent)
		resp.verdicts, _ = resp.rules.AllowedAll(targets)
		resp.Body = nil
	}
	return resp
}

// Verdicts are those on the first targets of [Policy.Read]; there may be none.
func (r Response) Verdicts() []bool { return r.verdicts }

// Settle returns what is known after resp came at now, where e was known before. resp is the end
// of all redirects. An error forbids everything until it is over, unless a file that was read
// before is known: that one stays in use, however old (section 2.3.1.4).
func (p Policy) Settle(e Entry, now time.Duration, resp Response) Entry {
	switch classOf(resp.Status) {
	case answered:
		rules := p.Read(resp).rules
		e = Entry{state: stateOK, rules: rules, delay: min(rules.CrawlDelay(), p.MaxCrawlDelay),
			fetched: now, until: now + p.TTL}
		if rules.Len() == 0 {
			e.rules = AllowAll() // the same for all
		}
		return e
	case unavailable:
		return Entry{state: stateUnavailable, rules: AllowAll(), fetched: now, until: now + p.TTL}
	}
	again := now + max(p.ErrorTTL, min(resp.RetryAfter, maxRetryAfter))
	if (e.state == stateOK || e.state == stateStale) && e.rules != nil {
		e.state, e.until = stateStale, again
		return e
	}
	return Entry{state: stateUnreachable, rules: DisallowAll(), delay: e.delay, fetched: now, until: again}
}

// state is how an Entry came about.
type state uint8

const (
	stateUnknown     state = iota // nothing was asked yet
	stateOK                       // a file was read
	stateUnavailable              // there is none: everything is allowed
	stateUnreachable              // an error: nothing is allowed
	stateStale                    // an error, and the last file that was read is in use
)

// Entry is what is known of one origin's robots.txt. The zero value knows nothing. It is a value:
// methods change nothing.
type Entry struct {
	rules   *Rules
	delay   time.Duration
	fetched time.Duration
	until   time.Duration
	state   state
}

// Fresh reports whether e may be used at now; if not, robots.txt is to be fetched, again or for
// the first time, before the next document.
func (e Entry) Fresh(now time.Duration) bool { return e.state != stateUnknown && now < e.until }

// Unreachable reports whether e is an error that forbids everything until it is over.
func (e Entry) Unreachable() bool { return e.state == stateUnreachable }

// Failed reports whether the last answer was an error.
func (e Entry) Failed() bool { return e.state == stateUnreachable || e.state == stateStale }

// WithoutRules returns e without what the file says, which is to be fetched again when it is
// needed.
func (e Entry) WithoutRules() Entry {
	e.rules = nil
	return e
}

// FreshUntil returns when e stops being fresh; 0 where nothing is known.
func (e Entry) FreshUntil() time.Duration { return e.until }

// Rules returns what is in force, nil where nothing is known, or not any more.
func (e Entry) Rules() *Rules { return e.rules }

// CrawlDelay returns the pause between two requests that the file asks for, at most the policy's
// MaxCrawlDelay; 0 where it asks for none.
func (e Entry) CrawlDelay() time.Duration { return e.delay }

// FetchedAt returns when the answer came that the rules are from; ok is false where nothing is
// known.
func (e Entry) FetchedAt() (at time.Duration, ok bool) {
	return e.fetched, e.state != stateUnknown
}

// State names how e came about, for an operator: "unknown" (nothing asked yet), "ok" (a file was
// read), "unavailable" (there is none: all is allowed), "unreachable" (an error: nothing is
// allowed), "stale" (an error, the last file read is in use).
func (e Entry) State() string {
	switch e.state {
	case stateOK:
		return "ok"
	case stateUnavailable:
		return "unavailable"
	case stateUnreachable:
		return "unreachable"
	case stateStale:
		return "stale"
	}
	return "unknown"
}
