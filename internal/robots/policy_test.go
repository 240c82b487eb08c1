package robots

import (
	"math"
	"testing"
	"time"
)

// foobotFile is a robots.txt.
var foobotFile = []byte("User-agent: foobot\nDisallow: /x\nCrawl-delay: 7\n")

// settlement is an answer, and what an Entry says when the answer was settled.
type settlement struct {
	at    time.Duration
	resp  Response
	state string
	allow bool // of /x
	delay time.Duration
	from  time.Duration // when the rules' file arrived
	until time.Duration
}

// settlements are answers for the robots.txt of one origin, one after the other.
var settlements = []struct {
	name    string
	answers []settlement
}{
	{name: "a file holds for the TTL", answers: []settlement{
		{at: time.Second, resp: Response{Status: 200, Body: foobotFile}, state: "ok", delay: 7 * time.Second,
			from: time.Second, until: 24*time.Hour + time.Second},
	}},
	{name: "none holds for the TTL", answers: []settlement{
		{resp: Response{Status: 404, Body: foobotFile}, state: "unavailable", allow: true,
			until: 24 * time.Hour},
	}},
	{name: "redirects that lead nowhere are none", answers: []settlement{
		{resp: Response{Status: 301, Location: "http://a.test/"}, state: "unavailable", allow: true,
			until: 24 * time.Hour},
	}},
	{name: "an error forbids until the next try", answers: []settlement{
		{resp: Response{Status: 503}, state: "unreachable", until: 10 * time.Minute},
		{at: 10 * time.Minute, resp: Response{}, state: "unreachable", from: 10 * time.Minute,
			until: 20 * time.Minute},
		{at: 20 * time.Minute, resp: Response{Status: 200, Body: foobotFile}, state: "ok",
			delay: 7 * time.Second, from: 20 * time.Minute, until: 24*time.Hour + 20*time.Minute},
	}},
	{name: "Retry-After counts where it is longer", answers: []settlement{
		{resp: Response{Status: 429, RetryAfter: time.Minute}, state: "unreachable", until: 10 * time.Minute},
		{resp: Response{Status: 429, RetryAfter: 30 * time.Minute}, state: "unreachable",
			until: 30 * time.Minute},
		{resp: Response{Status: 503, RetryAfter: 30 * time.Hour}, state: "unreachable", until: time.Hour},
	}},
	{name: "the last file stays in use during errors", answers: []settlement{
		{resp: Response{Status: 200, Body: foobotFile}, state: "ok", delay: 7 * time.Second,
			until: 24 * time.Hour},
		{at: 25 * time.Hour, resp: Response{Status: 500}, state: "stale", delay: 7 * time.Second,
			until: 25*time.Hour + 10*time.Minute},
		{at: 26 * time.Hour, resp: Response{}, state: "stale", delay: 7 * time.Second,
			until: 26*time.Hour + 10*time.Minute},
		{at: 27 * time.Hour, resp: Response{Status: 429, RetryAfter: time.Hour}, state: "stale",
			delay: 7 * time.Second, until: 28 * time.Hour},
		{at: 28 * time.Hour, resp: Response{Status: 200}, state: "ok", allow: true,
			from: 28 * time.Hour, until: 52 * time.Hour},
	}},
	{name: "that there was no file is no file", answers: []settlement{
		{resp: Response{Status: 404}, state: "unavailable", allow: true, until: 24 * time.Hour},
		{at: 24 * time.Hour, resp: Response{Status: 500}, state: "unreachable", from: 24 * time.Hour,
			until: 24*time.Hour + 10*time.Minute},
	}},
	{name: "a file that is gone is gone", answers: []settlement{
		{resp: Response{Status: 200, Body: foobotFile}, state: "ok", delay: 7 * time.Second,
			until: 24 * time.Hour},
		{at: 24 * time.Hour, resp: Response{Status: 410}, state: "unavailable", allow: true,
			from: 24 * time.Hour, until: 48 * time.Hour},
	}},
	{name: "a long delay is cut", answers: []settlement{
		{resp: Response{Status: 200,
			Body: []byte("User-agent: *\nCrawl-delay: 99999999999\nDisallow: /x")}, state: "ok",
			delay: time.Hour, until: 24 * time.Hour},
	}},
}

// TestSettle is a script of answers. After each it checks what is known and until when.
func TestSettle(t *testing.T) {
	policy := Policy{Agent: "foobot/1.0", TTL: 24 * time.Hour, ErrorTTL: 10 * time.Minute,
		MaxCrawlDelay: time.Hour}
	for _, tc := range settlements {
		t.Run(tc.name, func(t *testing.T) {
			var e Entry
			for i, a := range tc.answers {
				e = policy.Settle(e, a.at, a.resp)
				if got := e.State(); got != a.state {
					t.Errorf("answer %d: state %q, want %q", i, got, a.state)
				}
				if got := e.Rules().Allowed([]byte("/x")); got != a.allow {
					t.Errorf("answer %d: /x allowed = %t, want %t", i, got, a.allow)
				}
				if got := e.CrawlDelay(); got != a.delay {
					t.Errorf("answer %d: crawl delay %v, want %v", i, got, a.delay)
				}
				if at, ok := e.FetchedAt(); at != a.from || !ok {
					t.Errorf("answer %d: fetched at %v, %t; want %v", i, at, ok, a.from)
				}
				if e.FreshUntil() != a.until || !e.Fresh(a.until-1) || e.Fresh(a.until) {
					t.Errorf("answer %d: fresh until %v, want %v", i, e.FreshUntil(), a.until)
				}
			}
		})
	}
}

func TestZeroEntryKnowsNothing(t *testing.T) {
	var e Entry
	if _, ok := e.FetchedAt(); ok || e.Fresh(-math.MaxInt64) || e.Rules() != nil || e.CrawlDelay() != 0 ||
		e.State() != "unknown" {
		t.Errorf("zero entry: %+v", e)
	}
}

func TestReadAheadOfSettling(t *testing.T) {
	policy := Policy{Agent: "x", TTL: time.Hour, MaxCrawlDelay: time.Hour}
	resp := policy.Read(Response{Status: 200, Body: []byte("User-agent: x\nDisallow: /x\n")})
	if resp.Body != nil {
		t.Error("the body is kept beside what was read of it")
	}
	if policy.Settle(Entry{}, 0, policy.Read(resp)).Rules().Allowed([]byte("/x")) {
		t.Error("what was read is lost")
	}
	if resp := policy.Read(Response{Status: 404, Body: []byte("gone")}); resp.rules != nil {
		t.Error("the body of an error was read as a file")
	}
}

// If the rules of a file were dropped, and it cannot be fetched again, everything is forbidden. Its
// Crawl-delay still applies to the host's group.
func TestDelayOutlivesRules(t *testing.T) {
	policy := Policy{Agent: "x", TTL: time.Hour, ErrorTTL: time.Minute, MaxCrawlDelay: time.Hour}
	e := policy.Settle(Entry{}, 0, Response{Status: 200, Body: []byte("User-agent: *\nCrawl-delay: 9\n")})
	e = policy.Settle(e.WithoutRules(), time.Minute, Response{Status: 503})
	if !e.Unreachable() || e.CrawlDelay() != 9*time.Second {
		t.Errorf("after an error: unreachable %v, Crawl-delay %v; want true, 9s", e.Unreachable(),
			e.CrawlDelay())
	}
	e = policy.Settle(e, 2*time.Minute, Response{Status: 404})
	if e.CrawlDelay() != 0 {
		t.Errorf("after 404: Crawl-delay %v; want none", e.CrawlDelay())
	}
}
