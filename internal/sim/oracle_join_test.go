package sim

import (
	"testing"

	"urlserver/configs"
)

// lineB is for b.test at an address of its own.
const lineB = "1.0.1 3 " + addrB + " http://b.test/3"

// one puts a.test and b.test into one group; apart puts them back.
func (s story) one() { s.rules(configs.HostRule{Hosts: []string{"*"}, Group: "one"}) }

func (s story) apart() { s.rules() }

// TestOracleOfJoining tests hosts that join a group while requests to them are open. A request to
// a.test is open since 10 s.
func TestOracleOfJoining(t *testing.T) {
	joining := func(do func(s story)) func(s story) {
		return func(s story) {
			s.set.delayFactor = 0
			s.name("b.test", addrB)
			s.send(1, line1)
			do(s)
		}
	}
	runStories(t, []storyTest{
		{name: "asked meanwhile", do: joining(func(s story) {
			s.at(15)
			s.one()
			s.send(1, lineB)
		}), want: RuleOpenSite},
		{name: "asked meanwhile, where two may be open", do: joining(func(s story) {
			s.set.concurrent, s.set.siteOpen = 2, 2
			s.at(15)
			s.one()
			s.send(1, lineB)
		})},
		{name: "asked when it has ended", do: joining(func(s story) {
			s.at(15)
			s.one()
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.send(1, lineB)
		})},
		{name: "asked too soon when it has ended", do: joining(func(s story) {
			s.at(10.5)
			s.one()
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(10.9)
			s.send(1, lineB)
		}), want: RuleGapSite},
		{name: "asked too soon when it had ended before", do: joining(func(s story) {
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(10.5)
			s.one()
			s.at(10.9)
			s.send(1, lineB)
		}), want: RuleGapSite},
		{name: "sooner than a host that has joined asked for", do: joining(func(s story) {
			s.at(15)
			s.one()
			s.done(1, "0.0.1 DONE 503 9", "1", 503)
			s.at(20)
			s.send(1, lineB)
		}), want: RuleNotBefore},
		{name: "asked when it stays", do: joining(func(s story) {
			s.at(15)
			s.one()
			s.apart()
			s.send(1, lineB)
		})},
		{name: "asked while it is on its way back", do: joining(func(s story) {
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.one()
			s.at(15)
			s.send(1, "0.0.2 2 "+addrA+" http://a.test/2")
			s.apart()
			s.name("c.test", addrA)
			s.took("5", "http://c.test/5", 0)
			s.at(20)
			s.send(2, "0.1.2 5 "+addrA+" http://c.test/5")
		}), want: RuleOpenAddress},
	})
}

// TestOracleOfOpenRequestsBelow tests hosts that changed rules put below an address or a network,
// while requests to them are open. A request to a.test is open since 10 s.
func TestOracleOfOpenRequestsBelow(t *testing.T) {
	cdn := func(concurrent int, perSec float64) configs.HostRule {
		return configs.HostRule{Networks: nets("192.0.2.0/24"), Shared: true, Name: "cdn", PerSec: perSec,
			Concurrent: concurrent}
	}
	asking := func(first []configs.HostRule, do func(s story)) func(s story) {
		return func(s story) {
			s.set.delayFactor = 0
			s.rules(first...)
			s.name("b.test", addrB)
			s.name("c.test", addrA)
			s.took("5", "http://c.test/5", 0)
			s.send(1, line1)
			do(s)
		}
	}
	const lineC = "1.0.1 5 " + addrA + " http://c.test/5"
	runStories(t, []storyTest{
		{name: "a network that is full", do: asking(nil, func(s story) {
			s.at(15)
			s.rules(cdn(1, 10))
			s.send(1, lineB)
		}), want: RuleOpenNetwork},
		{name: "a network with room", do: asking(nil, func(s story) {
			s.at(15)
			s.rules(cdn(2, 10))
			s.send(1, lineB)
		})},
		{name: "a network that was full", do: asking(nil, func(s story) {
			s.at(15)
			s.rules(cdn(1, 10))
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.send(1, lineB)
		})},
		{name: "a network too soon", do: asking(nil, func(s story) {
			s.at(10.5)
			s.rules(cdn(2, 1))
			s.send(1, lineB)
		}), want: RuleGapNetwork},
		{name: "a network too soon after what has ended", do: asking(nil, func(s story) {
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(10.5)
			s.rules(cdn(2, 1))
			s.send(1, lineB)
		}), want: RuleGapNetwork},
		{name: "an address that was on a network", do: asking([]configs.HostRule{cdn(9, 10)}, func(s story) {
			s.at(15)
			s.rules(configs.HostRule{Hosts: []string{"a.test"}, Group: "one"})
			s.send(1, lineC)
		}), want: RuleOpenAddress},
	})
}
