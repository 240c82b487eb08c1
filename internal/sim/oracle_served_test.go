package sim

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"urlserver/docindex"
)

// serves has a document of a.test, which is due, end after so long.
func (s story) serves(waits func()) {
	s.service = &service{debts: make([]debt, 5)}
	s.owe([]uint32{1, 2}, "a.test", netip.MustParseAddr(addrA))
	s.due(1)
	waits()
	s.send(1, line1)
	s.done(1, "0.0.1 DONE 200", "1", 200)
}

func TestOracleOfService(t *testing.T) {
	soon := newStory().patience()
	runStories(t, []storyTest{
		{name: "served soon", do: func(s story) { s.serves(func() { s.pass(soon, true) }) }},
		{name: "served late", do: func(s story) { s.serves(func() { s.pass(soon+13*time.Second, true) }) },
			want: RuleServed},
		{name: "served late, as spiders had no room",
			do: func(s story) { s.serves(func() { s.pass(soon+time.Hour, false) }) }},
		{name: "served late, as the operator paused", do: func(s story) {
			s.serves(func() {
				s.disable(paused, true)
				s.pass(soon+time.Hour, true)
				s.disable(paused, false)
			})
		}},
		{name: "served after another of its group", do: func(s story) {
			s.serves(func() {
				s.send(2, "0.1.2 3 "+addrA+" http://b.test/3")
				s.done(2, "0.1.2 DONE 200", "3", 200)
				s.at(20)
				s.pass(soon+7*time.Second, true)
			})
		}},
	})
}

func TestOracleOfPatience(t *testing.T) {
	broken := errors.New("SERVFAIL")
	nowhere := func(s story, err error) { s.resolved("a.test", netip.Addr{}, err) }
	unanswered := func(s story, times int, apart float64) {
		s.set.robots = true
		for i := range times {
			s.robots(uint32(10+i), "a.test", robotsAnswer{})
			s.at(20 + apart*float64(i+1))
		}
		s.ends("1", docindex.Robots, 0, 0)
	}
	runStories(t, []storyTest{
		{name: "no address", do: func(s story) {
			nowhere(s, errNoAddress)
			s.ends("1", docindex.DNS, 0, 0)
		}},
		{name: "a name given up at once", do: func(s story) {
			nowhere(s, broken)
			s.ends("1", docindex.DNS, 0, 0)
		}, want: RulePatience},
		{name: "a name given up after a while", do: func(s story) {
			nowhere(s, broken)
			s.answers += s.set.giveUp
			nowhere(s, broken)
			s.ends("1", docindex.DNS, 0, 0)
		}},
		{name: "a name given up that resolved meanwhile", do: func(s story) {
			nowhere(s, broken)
			s.answers += s.set.giveUp
			s.name("a.test", addrA)
			nowhere(s, broken)
			s.ends("1", docindex.DNS, 0, 0)
		}, want: RulePatience},
		{name: "robots.txt given up at once", do: func(s story) { unanswered(s, 1, 60) }, want: RulePatience},
		{name: "robots.txt given up soon", do: func(s story) { unanswered(s, 2, 10) }, want: RulePatience},
		{name: "robots.txt given up", do: func(s story) { unanswered(s, 2, 60) }},
	})
}
