package sim

import (
	"net/netip"
	"testing"
	"time"

	"urlserver/configs"
)

// TestOracleOfPace tests the gaps and the limits of open requests, of hosts and groups.
func TestOracleOfPace(t *testing.T) {
	runStories(t, []storyTest{
		{name: "one after the other", do: func(s story) {
			s.send(1, line1)
			s.at(10.5)
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(11)
			s.send(2, line2)
		}},
		{name: "two at once to an address", do: func(s story) {
			s.send(1, line1)
			s.at(12)
			s.send(1, line3)
		}, want: RuleOpenAddress},
		{name: "two at once to a host that moved", do: func(s story) {
			s.send(1, line1)
			s.hosts["a.test"].at = nil // as if nothing held it
			s.name("a.test", addrB)
			s.at(12)
			s.send(1, "0.1.2 2 "+addrB+" http://a.test/2")
		}, want: RuleOpenSite},
		{name: "the same with room for two", do: func(s story) {
			s.set.concurrent, s.set.siteOpen = 2, 2
			s.send(1, line1)
			s.at(11)
			s.send(1, line3)
		}},
		{name: "too soon for the address", do: func(s story) {
			s.set.concurrent, s.set.siteOpen = 2, 2
			s.send(1, line1)
			s.at(10.999)
			s.send(1, line3)
		}, want: RuleGapAddress},
		{name: "too soon for a host that moved", do: func(s story) {
			s.set.concurrent, s.set.siteOpen, s.set.quarantine = 2, 2, 0
			s.docs[2].held = false
			s.hosts["a.test"].held--
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.name("a.test", addrB)
			s.took("2", "http://a.test/2", 0)
			s.at(10.5)
			s.send(1, "0.0.2 2 "+addrB+" http://a.test/2")
		}, want: RuleGapSite},
		{name: "right after the start", do: func(s story) {
			s.at(0.9)
			s.send(1, line1)
		}, want: RuleStart},
	})
}

// TestOracleOfDelays tests what makes a gap longer: robots.txt, 429 and 503, long fetches.
func TestOracleOfDelays(t *testing.T) {
	runStories(t, []storyTest{
		{name: "a robots.txt is a request", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 404})
			s.at(10.9)
			s.send(1, line1)
		}, want: RuleGapAddress},
		{name: "Crawl-delay", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 200, delay: 10 * time.Second})
			s.at(19.9)
			s.send(1, line1)
		}, want: RuleCrawlDelay},
		{name: "doubled gap after 429", do: func(s story) {
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 429")
			s.at(11.9)
			s.send(1, line2)
		}, want: RuleBackoff},
		{name: "Retry-After", do: func(s story) {
			s.send(1, line1)
			s.at(10.5)
			s.status(1, "0.0.1 DONE 503 7")
			s.hosts["a.test"].backoff = 0 // as if forgotten
			s.at(17)
			s.send(1, line2)
		}, want: RuleNotBefore},
		{name: "as long as the last fetch took", do: func(s story) {
			s.send(1, line1)
			s.at(13)
			s.status(1, "0.0.1 DONE 200")
			s.at(13)
			s.hosts["a.test"].last += time.Second
			s.send(1, line2)
		}, want: RuleFair},
		{name: "a line that was long on its way", do: func(s story) {
			s.line(1, line1, s.now)
			s.at(15)
			s.gone(1)
			s.at(15.5)
			s.send(2, "0.0.2 1 "+addrA+" http://a.test/1")
		}, want: RuleGapAddress},
	})
}

// roomy begins a story in which a.test and b.test are at one address that allows more than a site
// does.
func roomy(do func(s story)) func(s story) {
	return func(s story) {
		s.set.gap, s.set.concurrent, s.set.delayFactor, s.set.robots = 1e8, 4, 0, true
		s.robots(1, "a.test", robotsAnswer{status: 404})
		s.at(10.1)
		s.robots(2, "b.test", robotsAnswer{status: 404})
		s.at(20)
		do(s)
	}
}

// TestOracleOfTwoLevels tests the paces of sites beside that of their address.
func TestOracleOfTwoLevels(t *testing.T) {
	runStories(t, []storyTest{
		{name: "another site", do: roomy(func(s story) {
			s.send(1, line1)
			s.at(20.1)
			s.send(1, line3)
		})},
		{name: "another site, too soon for the address", do: roomy(func(s story) {
			s.send(1, line1)
			s.at(20.09)
			s.send(1, line3)
		}), want: RuleGapAddress},
		{name: "the same site while a request is open", do: roomy(func(s story) {
			s.send(1, line1)
			s.at(22)
			s.send(1, line2)
		}), want: RuleOpenSite},
		{name: "the same site too soon", do: roomy(func(s story) {
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(20.9)
			s.send(1, line2)
		}), want: RuleGapSite},
		{name: "Crawl-delay of another site", do: roomy(func(s story) {
			s.origin("http://a.test").until = 0
			s.robots(3, "a.test", robotsAnswer{status: 200, delay: 10 * time.Second})
			s.at(20.1)
			s.send(1, line3)
		})},
		{name: "Retry-After of another site", do: roomy(func(s story) {
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 503 3600", "1", 503)
			s.at(20.1)
			s.send(1, line3)
		})},
	})
}

// lineC is for c.test at the address of a.test.
const lineC = "2.0.1 5 " + addrA + " http://c.test/5"

// TestOracleOfFailingSites tests an address that backs off since several of its sites fail.
func TestOracleOfFailingSites(t *testing.T) {
	fails := func(s story) { // a.test and b.test
		s.send(1, line1)
		s.at(20.1)
		s.send(1, line3)
		s.done(1, "0.0.1 DONE 503 3600", "1", 503)
		s.at(20.2)
		s.done(1, "0.1.2 DONE 429", "3", 429)
		s.name("c.test", addrA)
		s.took("5", "http://c.test/5", 0)
	}
	runStories(t, []storyTest{
		{name: "two sites fail, and the address is asked too soon", do: roomy(func(s story) {
			fails(s)
			s.at(20.25)
			s.robots(3, "c.test", robotsAnswer{status: 404})
		}), want: RuleAddressFails},
		{name: "two sites fail, and the address is asked later", do: roomy(func(s story) {
			fails(s)
			s.at(20.3)
			s.robots(3, "c.test", robotsAnswer{status: 404})
			s.at(21.3)
			s.send(1, lineC)
		})},
		{name: "one succeeds between", do: roomy(func(s story) {
			s.name("c.test", addrA)
			s.took("5", "http://c.test/5", 0)
			s.robots(3, "c.test", robotsAnswer{status: 404})
			s.at(21.5)
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 503", "1", 503)
			s.at(21.6)
			s.send(1, lineC)
			s.at(21.7)
			s.send(2, line3)
			s.done(1, "2.0.1 DONE 200", "5", 200)
			s.at(21.75)
			s.done(2, "0.1.2 DONE 503", "3", 503)
			s.took("6", "http://d.test/6", 0)
			s.name("d.test", addrA)
			s.at(21.8)
			s.robots(4, "d.test", robotsAnswer{status: 404})
		})},
	})
}

// TestOracleOfRulesOfLevels tests rules that make a site or an address faster or slower.
func TestOracleOfRulesOfLevels(t *testing.T) {
	runStories(t, []storyTest{
		{name: "a rule by hosts raises the address as far as all sites are allowed", do: roomy(func(s story) {
			s.rules(configs.HostRule{Hosts: []string{"*"}, PerSec: 20})
			s.send(1, line1)
			s.at(20.05)
			s.send(1, line3)
		})},
		{name: "a rule by hosts that names one site raises nothing", do: roomy(func(s story) {
			s.rules(configs.HostRule{Hosts: []string{"b.test"}, PerSec: 20})
			s.send(1, line1)
			s.at(20.05)
			s.send(1, line3)
		}), want: RuleGapAddress},
		{name: "a rule by networks", do: roomy(func(s story) {
			s.rules(configs.HostRule{Networks: nets(addrA + "/24"), PerSec: 20, SitePerSec: 0.1})
			s.at(21)
			s.send(1, line1)
			s.at(21.05)
			s.send(1, line3)
		})},
		{name: "sites by a rule by networks", do: roomy(func(s story) {
			s.rules(configs.HostRule{Networks: nets(addrA + "/24"), PerSec: 20, SitePerSec: 0.05})
			s.at(29.9)
			s.send(1, line1)
		}), want: RuleGapSite},
	})
}

// rules changes the settings' rules.
func (s story) rules(rules ...configs.HostRule) {
	set := s.set
	set.rules = rules
	s.configure(set)
}

func nets(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text).Masked())
	}
	return all
}

// TestOracleOfSharedNetworks has a.test and b.test on a shared network, at addresses that change.
func TestOracleOfSharedNetworks(t *testing.T) {
	shared := func(cap configs.Pace, do func(s story)) func(s story) {
		return func(s story) {
			s.set.delayFactor = 0
			s.rules(configs.HostRule{Networks: nets("192.0.2.0/24"), Shared: true, Name: "cdn",
				PerSec: cap.PerSec, Concurrent: cap.Concurrent})
			s.name("b.test", addrB)
			do(s)
		}
	}
	wide := configs.Pace{PerSec: 10, Concurrent: 2}
	const moved = "0.0.2 2 " + addrB + " http://a.test/2"
	runStories(t, []storyTest{
		{name: "as many as the network allows", do: shared(wide, func(s story) {
			s.send(1, line1)
			s.at(10.1)
			s.send(1, lineB)
		})},
		{name: "too soon for the network", do: shared(wide, func(s story) {
			s.send(1, line1)
			s.at(10.09)
			s.send(1, lineB)
		}), want: RuleGapNetwork},
		{name: "one more than the network allows",
			do: shared(configs.Pace{PerSec: 10, Concurrent: 1}, func(s story) {
				s.send(1, line1)
				s.at(12)
				s.send(1, lineB)
			}), want: RuleOpenNetwork},
		{name: "ten times a site's", do: shared(configs.Pace{}, func(s story) {
			s.send(1, line1)
			s.at(10.1)
			s.send(1, lineB)
		})},
		{name: "more than ten times a site's", do: shared(configs.Pace{}, func(s story) {
			s.send(1, line1)
			s.at(10.09)
			s.send(1, lineB)
		}), want: RuleGapNetwork},
		{name: "a site at another address while a request is open", do: shared(wide, func(s story) {
			s.send(1, line1)
			s.name("a.test", addrB)
			s.relocate()
			s.at(15)
			s.send(1, moved)
		}), want: RuleAddress},
		{name: "a site at another address too soon", do: shared(wide, func(s story) {
			s.send(1, line1)
			s.name("a.test", addrB)
			s.relocate()
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.at(10.9)
			s.send(1, moved)
		}), want: RuleGapSite},
	})
}
