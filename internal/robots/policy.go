package robots

import (
	"net/http"
	"time"
)

// Response is the answer to one request for a robots.txt.
type Response struct {
	Status     int           // 0: no answer
	Location   string        // absolute URL of a redirect, http or https; "" if it is unusable
	Body       []byte        // of a 2xx; at most what the client reads
	RetryAfter time.Duration // at most an hour; 0: none
	Err        error         // why there is no answer

	rules    *Rules // Body, parsed before Settle
	verdicts []bool
}

// class is the meaning of a status for robots.txt (RFC 9309, section 2.3.1).
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

// Policy decides how long answers are in force. Times that its methods take and return are
// monotonic, since the daemon's start. It is a value without state.
type Policy struct {
	Agent         string        // the User-Agent; its product token selects the group
	TTL           time.Duration // how long an answer is in force; RFC 9309 asks for 24 hours at most
	ErrorTTL      time.Duration // the pause after an error before the next try
	MaxCrawlDelay time.Duration // a longer Crawl-delay is reduced to this one
}

// maxRetryAfter bounds how long a server can postpone the next try.
const maxRetryAfter = time.Hour

// Read parses the body of resp before [Policy.Settle], and judges targets by it as
// [Rules.AllowedAll] does. So a goroutine that must not be delayed can call Settle: it does not
// parse the body again.
func (p Policy) Read(resp Response, targets ...[]byte) Response {
	if classOf(resp.Status) == answered && resp.rules == nil {
		resp.rules = Parse(resp.Body, p.Agent)
		resp.verdicts, _ = resp.rules.AllowedAll(targets)
		resp.Body = nil
	}
	return resp
}

// Verdicts returns the verdicts on the first targets of [Policy.Read]; there may be none.
func (r Response) Verdicts() []bool { return r.verdicts }

// Settle returns the entry after resp has arrived at now; e is the entry before. resp is the
// response at the end of all redirects. An error forbids everything until the next try, unless the
// rules of an earlier file are known: these stay in force, however old (section 2.3.1.4).
func (p Policy) Settle(e Entry, now time.Duration, resp Response) Entry {
	switch classOf(resp.Status) {
	case answered:
		rules := p.Read(resp).rules
		e = Entry{state: stateOK, rules: rules, delay: min(rules.CrawlDelay(), p.MaxCrawlDelay),
			fetched: now, until: now + p.TTL}
		if rules.Size() == 0 {
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

// state is the kind of an Entry.
type state uint8

const (
	stateUnknown     state = iota // nothing was requested yet
	stateOK                       // a file was read
	stateUnavailable              // the server has no file: everything is allowed
	stateUnreachable              // an error: nothing is allowed
	stateStale                    // an error, and the last file that was read stays in force
)

// Entry is what is known of one origin's robots.txt. The zero value knows nothing. It is a value:
// methods do not change it.
type Entry struct {
	rules   *Rules
	delay   time.Duration
	fetched time.Duration
	until   time.Duration
	state   state
}

// Fresh reports whether e may be used at now. If not, robots.txt must be fetched before the next
// document.
func (e Entry) Fresh(now time.Duration) bool { return e.state != stateUnknown && now < e.until }

// Unreachable reports whether the last answer was an error and everything is forbidden.
func (e Entry) Unreachable() bool { return e.state == stateUnreachable }

// Failed reports whether the last answer was an error.
func (e Entry) Failed() bool { return e.state == stateUnreachable || e.state == stateStale }

// WithoutRules returns e without its rules and sitemaps. The file must be fetched again when the
// rules are needed. A file that has only sitemaps still allows everything.
func (e Entry) WithoutRules() Entry {
	if e.rules != nil && e.rules.Len() == 0 && len(e.rules.sitemaps) > 0 {
		e.rules = AllowAll()
		return e
	}
	e.rules = nil
	return e
}

// FreshUntil returns when e stops being fresh; 0 if nothing is known.
func (e Entry) FreshUntil() time.Duration { return e.until }

// Rules returns the rules in force; nil if nothing is known, or the rules were dropped.
func (e Entry) Rules() *Rules { return e.rules }

// CrawlDelay returns the pause between two requests that the file asks for, at most the policy's
// MaxCrawlDelay; 0 if it asks for none.
func (e Entry) CrawlDelay() time.Duration { return e.delay }

// FetchedAt returns when the answer arrived that the rules are from; ok is false if nothing is
// known.
func (e Entry) FetchedAt() (at time.Duration, ok bool) {
	return e.fetched, e.state != stateUnknown
}

// State returns the state of e for an operator: "unknown" (nothing was requested yet), "ok" (a file
// was read), "unavailable" (the server has none: all is allowed), "unreachable" (an error: nothing
// is allowed), "stale" (an error, and the last file that was read stays in force).
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
