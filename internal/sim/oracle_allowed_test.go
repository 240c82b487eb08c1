package sim

import (
	"net/netip"
	"testing"
	"time"

	"urlserver/docindex"
)

func TestOracleOfOperator(t *testing.T) {
	runStories(t, []storyTest{
		{name: "while paused", do: func(s story) {
			s.disable(paused, true)
			s.send(1, line1)
		}, want: RuleDisabled},
		{name: "decided before the pause", do: func(s story) {
			s.disable(paused, true)
			s.line(1, line1, s.now-time.Second)
		}},
		{name: "while blocked", do: func(s story) {
			s.block("a.test", 20*time.Second)
			s.send(1, line1)
		}, want: RuleBlocked},
		{name: "block is over", do: func(s story) {
			s.block("a.test", 20*time.Second)
			s.at(20)
			s.send(1, line1)
		}},
	})
}

func TestOracleOfRobots(t *testing.T) {
	runStories(t, []storyTest{
		{name: "robots.txt not asked", do: func(s story) {
			s.set.robots = true
			s.send(1, line1)
		}, want: RuleRobots},
		{name: "robots.txt forbids", do: func(s story) {
			s.set.robots = true
			s.took("5", "http://a.test/private/5", 9)
			s.robots(1, "a.test", robotsAnswer{status: 200, rules: true})
			s.at(12)
			s.send(1, "0.0.1 5 "+addrA+" http://a.test/private/5")
		}, want: RuleRobots},
		{name: "robots.txt without an answer forbids", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{})
			s.at(12)
			s.send(1, line1)
		}, want: RuleRobots},
		{name: "robots.txt of another origin", do: func(s story) {
			s.set.robots = true
			s.took("5", "https://a.test/5", 9)
			s.robots(1, "a.test", robotsAnswer{status: 404})
			s.at(12)
			s.send(1, "0.0.1 5 "+addrA+" https://a.test/5")
		}, want: RuleRobots},
	})
}

// TestOracleOfRedirects tests a robots.txt that redirects to another host.
func TestOracleOfRedirects(t *testing.T) {
	runStories(t, []storyTest{
		{name: "its rules count for the first host", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 301, location: "http://b.test/robots.txt"})
			s.at(12)
			s.robots(1, "b.test", robotsAnswer{status: 404})
			s.at(14)
			s.send(1, line1)
		}},
		{name: "to a name that is given up", do: func(s story) { s.givenUpAndSentAt(4159) }},
		{name: "to a name that was given up, for too long", do: func(s story) { s.givenUpAndSentAt(4160) },
			want: RuleRobots},
		{name: "to a name that was given up, and found since", do: func(s story) {
			s.redirectedToLost(3800)
			s.at(4100)
			s.resolved("c.test", netip.Addr{}, errBroken)
			s.at(4101)
			s.name("c.test", addrB)
			s.sendAndEnd(line1)
		}},
		{name: "to a name that is not given up", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 200, rules: true})
			s.at(20)
			s.sendAndEnd(line1)
			s.at(3800)
			s.robots(2, "a.test", robotsAnswer{status: 301, location: "http://c.test/robots.txt"})
			s.resolved("c.test", netip.Addr{}, errBroken)
			s.at(4100)
			s.resolved("c.test", netip.Addr{}, errBroken)
			s.send(1, line2)
		}, want: RuleRobots},
		{name: "while a document ends", do: func(s story) {
			s.set.robots, s.set.concurrent, s.set.siteOpen = true, 2, 2
			s.robots(1, "a.test", robotsAnswer{status: 200, rules: true})
			s.at(3609)
			s.send(1, line1)
			s.redirectedToLost(3800)
			s.status(1, "0.0.1 DONE 200")
			s.at(4100)
			s.resolved("c.test", netip.Addr{}, errBroken)
			s.ends("1", docindex.Done, 200, 1)
			s.name("c.test", addrB)
			s.at(4200)
			s.fetch(2, "http://c.test/robots.txt", netip.MustParseAddr(addrB))
			s.fetched(2, robotsAnswer{status: 404})
		}},
	})
}

// redirectedToLost redirects the robots.txt of a.test, which was read more than an hour ago, to
// c.test, whose name has failed for an hour.
func (s story) redirectedToLost(seconds float64) {
	s.set.robots, s.set.statusTimeout = true, time.Hour
	if s.origin("http://a.test").state == notAsked {
		s.robots(1, "a.test", robotsAnswer{status: 200, rules: true})
	}
	s.resolved("c.test", netip.Addr{}, errBroken)
	s.answers += time.Hour
	s.at(seconds)
	s.resolved("c.test", netip.Addr{}, errBroken)
	s.robots(2, "a.test", robotsAnswer{status: 301, location: "http://c.test/robots.txt"})
}

// givenUpAndSentAt lets robots.txt of a.test redirect to a name that is given up at 4100 s, and sends
// document 2 at the given moment.
func (s story) givenUpAndSentAt(seconds float64) {
	s.redirectedToLost(3800)
	s.at(4100)
	s.resolved("c.test", netip.Addr{}, errBroken)
	s.sendAndEnd(line1)
	s.at(seconds)
	s.send(1, line2)
}

// sendAndEnd sends document 1, which is done at once.
func (s story) sendAndEnd(line string) {
	s.send(1, line)
	s.done(1, "0.0.1 DONE 200", "1", 200)
}
