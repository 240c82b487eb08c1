package sim

import (
	"fmt"
	"strconv"
	"time"

	"urlserver/internal/robots"
	"urlserver/urlserver/engine"
)

// What a host answers to a request for its robots.txt.
const (
	robotsNone      = iota // 404
	robotsRules            // disallows /private/
	robotsDelay            // also has a Crawl-delay
	robotsElsewhere        // redirects to another host
	robotsNowhere          // redirects without a Location
	robotsBusy             // 429 or 503, then rules
	robotsMute             // no answer, then rules
	robotsMoody            // one of the above, another one each time
	robotsHabits           // number of those above; below are accidents
	robotsHangs            // no answer
	robotsHuge             // very many rules
	robotsCostly           // a verdict on a URL takes long; some of the URLs are long
	robotsDetour           // redirects to a host in trouble
)

var redirects = [...]int{301, 302, 303, 307, 308}

// robotsFor returns a host's present answer to a request for robots.txt.
func (r *run) robotsFor(host uint32) robotsAnswer {
	s := &r.world.hosts[host]
	habit := s.robots
	if habit == robotsMoody {
		habit = uint8(r.rng.IntN(robotsMoody))
	}
	healed := r.now >= r.sc.Heal
	switch {
	case habit == robotsHangs && !healed:
		return robotsAnswer{}
	case habit == robotsHuge || habit == robotsCostly:
		return robotsAnswer{status: 200, rules: true, habit: habit}
	case habit == robotsElsewhere, habit == robotsDetour:
		return robotsAnswer{status: redirects[r.rng.IntN(len(redirects))],
			location: "http://" + hostInURL(r.world.hosts[s.next].name) + "/robots.txt"}
	case habit == robotsNowhere:
		return robotsAnswer{status: 301}
	case habit == robotsBusy && !healed && r.rng.IntN(2) == 0:
		return robotsAnswer{status: 429 + 74*r.rng.IntN(2),
			retry: time.Duration(r.rng.IntN(3)*r.rng.IntN(900)) * time.Second}
	case habit == robotsMute && !healed && r.rng.IntN(2) == 0:
		return robotsAnswer{}
	case habit == robotsDelay:
		return robotsAnswer{status: 200, rules: true, delay: time.Duration(s.delay) * time.Second}
	case habit == robotsNone:
		return robotsAnswer{status: 404}
	}
	return robotsAnswer{status: 200, rules: true}
}

// serveRobots answers a request for robots.txt after a while. As in the daemon, the client that
// fetches the file also makes the first verdicts.
func (r *run) serveRobots(f engine.Fetch) {
	a := r.robotsFor(r.world.byName[hostOf(f.URL[:targetAt(f.URL)])])
	wait := r.between(5*time.Millisecond, 500*time.Millisecond)
	if a.status == 0 {
		wait = r.sc.Config.Robots.Timeout
	}
	r.after(wait, r.ofLife(func() {
		resp := r.policy.Read(a.response(), f.Targets...)
		r.oracle.fetched(f.ID, a)
		r.oracle.judges(f.Targets[:len(resp.Verdicts())])
		r.engine.Fetched(f.ID, resp)
	}))
}

func (a *robotsAnswer) response() robots.Response {
	resp := robots.Response{Status: a.status, Location: a.location, RetryAfter: a.retry}
	if a.rules {
		resp.Body = []byte("User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\n")
	}
	if a.habit != robotsNone {
		resp.Body = append(resp.Body, longRobots(a.habit)...)
	}
	if a.delay > 0 {
		resp.Body = fmt.Appendf(resp.Body, "Crawl-delay: %d\n", int(a.delay.Seconds()))
	}
	return resp
}

// longRobots returns rules that match no URL: many of them, or costly ones.
func longRobots(habit uint8) []byte {
	if habit == robotsHuge {
		return hugeRobots
	}
	return costlyRobots
}

var (
	hugeRobots   = manyRules("Disallow: /nothing/%d/is/here\n", 10_000)
	costlyRobots = costlyRules(6000)
)

// costlyRules returns n patterns. Each has only parts so short that they occur in many URLs, so no
// part shows quickly that a URL does not match.
func costlyRules(n int) (rules []byte) {
	for i := range n {
		rules = append(rules, "Disallow: /"...)
		for _, digit := range strconv.Itoa(i) {
			rules = append(rules, '*', byte(digit))
		}
		rules = append(rules, "*~*~$\n"...)
	}
	return rules
}

func manyRules(format string, n int) (rules []byte) {
	for i := range n {
		rules = fmt.Appendf(rules, format, i)
	}
	return rules
}

// fetchPage returns the result of a spider's fetch: the status, the Retry-After in seconds, and how
// long the fetch takes. -1 is none.
func (r *run) fetchPage(doc uint32) (status, retry int, took time.Duration) {
	s := &r.world.hosts[r.world.docs[doc].host]
	took = r.between(20*time.Millisecond, 800*time.Millisecond)
	if s.quick {
		took = r.between(10*time.Millisecond, 200*time.Millisecond)
	}
	if r.chance(r.sc.Trouble.Slow) {
		took = r.between(0, 2*r.sc.Config.TimeoutSpiderStatus)
	}
	if s.closed {
		return 503, 3600, took
	}
	busy := s.overloaded && r.sc.Trouble.Overload > 0 && int(r.now/(10*time.Minute))%3 == 0
	switch n := r.rng.IntN(100); {
	case busy && n < 60:
		return 429 + 74*(n&1), []int{-1, 0, 5, 120, 5000}[n%5], took
	case n < 3:
		return 0, -1, took
	case n < 5:
		return 500, -1, took
	case n < 10:
		return 404, -1, took
	case n < 15:
		return -1, -1, took
	case r.sc.Crawls > 0 && n < 20:
		return 301, -1, took
	}
	return 200, -1, took
}

// doneLine returns the line that a spider sends at the end of a fetch.
func doneLine(trans string, status, retry int) string {
	line := trans + " DONE"
	if status >= 0 {
		line += " " + strconv.Itoa(status)
	}
	if status >= 0 && retry >= 0 {
		line += " " + strconv.Itoa(retry)
	}
	return line + "\n"
}
