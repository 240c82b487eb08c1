package sim

import (
	"net/netip"
	"testing"
	"time"

	"urlserver/docindex"
)

const (
	addrA = "192.0.2.1"
	addrB = "192.0.2.2"
)

// story is an oracle that a test gives events to. An event happens at the time of the one before,
// unless at has set another time.
type story struct{ *oracle }

// newStory returns an oracle with two documents each of a.test and b.test, both at addrA, and two
// spiders.
func newStory() story {
	s := story{newOracle(limits{
		gap: 1e9, concurrent: 1, siteGap: 1e9, siteOpen: 1, inFlight: 2, attempts: 2, rejectOver: 5,
		statusTimeout: time.Minute,
		quarantine:    time.Minute, delayFactor: 1, maxDelay: 5 * time.Second,
		robotsTTL: time.Hour, errorTTL: time.Minute, maxCrawlDelay: 30 * time.Second,
		giveUp: 5 * time.Minute, maxFetch: time.Hour,
	}, 100)}
	s.connected(1)
	s.connected(2)
	s.at(10)
	s.name("a.test", addrA)
	s.name("b.test", addrA)
	s.took("1", "http://a.test/1", 0)
	s.took("2", "http://a.test/2", 0)
	s.took("3", "http://b.test/3", 0)
	s.took("4", "http://b.test/4", 0)
	return s
}

// at sets the time, in seconds.
func (s story) at(seconds float64) {
	s.setClocks(time.Duration(seconds*float64(time.Second)), time.Time{})
	s.expire()
}

func (s story) name(host, addr string) { s.resolved(host, netip.MustParseAddr(addr), nil) }

// send sends a line to a spider. It arrives at once.
func (s story) send(spider uint32, line string) {
	s.line(spider, line, s.now)
	s.written(spider)
}

// ends reports the outcome of a document.
func (s story) ends(id string, kind docindex.Kind, status, attempts int) {
	s.outcome(docindex.Outcome{DocID: []byte(id), Kind: kind, Status: status, Attempts: attempts})
}

// done takes the status line that ends a document's only transaction, and the outcome.
func (s story) done(spider uint32, line, id string, status int) {
	s.status(spider, line)
	s.ends(id, docindex.Done, status, 1)
}

// robots fetches a host's robots.txt.
func (s story) robots(id uint32, host string, a robotsAnswer) {
	s.fetch(id, "http://"+host+"/robots.txt", netip.MustParseAddr(addrA))
	s.fetched(id, a)
}

func (s story) check(t *testing.T, want Rule) {
	t.Helper()
	var got Rule
	if s.complaint != nil {
		got = s.complaint.Rule
	}
	if got != want {
		t.Errorf("complaint %v; want rule %q", s.complaint, want)
	}
}

const (
	line1 = "0.0.1 1 " + addrA + " http://a.test/1"
	line2 = "0.0.2 2 " + addrA + " http://a.test/2"
	line3 = "0.1.2 3 " + addrA + " http://b.test/3"
)

// storyTest is a short story and the rule that its end breaks; "" for none.
type storyTest struct {
	name string
	do   func(s story)
	want Rule
}

func runStories(t *testing.T, stories []storyTest) {
	t.Helper()
	for _, one := range stories {
		t.Run(one.name, func(t *testing.T) {
			s := newStory()
			one.do(s)
			s.check(t, one.want)
		})
	}
}

func TestHostOf(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.test":             "a.test",
		"https://a.test:8443":       "a.test",
		"http://[2001:db8::1]":      "2001:db8::1",
		"http://[2001:db8::1]:8080": "2001:db8::1",
	} {
		if got := hostOf(url); got != want {
			t.Errorf("hostOf(%q) = %q; want %q", url, got, want)
		}
	}
}
