package sim

import (
	"testing"
	"time"

	"urlserver/docindex"
)

// TestOracleOfPace tests the gaps and the limits of open requests, of hosts and groups.
func TestOracleOfPace(t *testing.T) {
	runStories(t, []storyTest{
		{name: "one after the other", do: func(s story) {
			s.send(1, line1)
			s.at(10.5)
			s.status(1, "0.0.1 DONE 200")
			s.ends("1", docindex.Done, 200, 1)
			s.at(11)
			s.send(2, line2)
		}},
		{name: "two at once to a group", do: func(s story) {
			s.send(1, line1)
			s.at(12)
			s.send(1, line3)
		}, want: RuleOpenGroup},
		{name: "two at once to a host that moved", do: func(s story) {
			s.send(1, line1)
			s.hosts["a.test"].at = nil // as if nothing held it
			s.name("a.test", addrB)
			s.at(12)
			s.send(1, "0.1.2 2 "+addrB+" http://a.test/2")
		}, want: RuleOpenHost},
		{name: "the same with room for two", do: func(s story) {
			s.set.concurrent = 2
			s.send(1, line1)
			s.at(11)
			s.send(1, line3)
		}},
		{name: "too soon for the group", do: func(s story) {
			s.set.concurrent = 2
			s.send(1, line1)
			s.at(10.999)
			s.send(1, line3)
		}, want: RuleGapGroup},
		{name: "too soon for a host that moved", do: func(s story) {
			s.set.concurrent, s.set.quarantine = 2, 0
			s.docs[2].held = false
			s.hosts["a.test"].held--
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 200")
			s.ends("1", docindex.Done, 200, 1)
			s.name("a.test", addrB)
			s.took("2", "http://a.test/2", 0)
			s.at(10.5)
			s.send(1, "0.0.2 2 "+addrB+" http://a.test/2")
		}, want: RuleGapHost},
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
		}, want: RuleGapGroup},
		{name: "Crawl-delay of another host of the group", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 200, delay: 10 * time.Second})
			s.at(21)
			s.robots(2, "b.test", robotsAnswer{status: 404})
			s.at(29)
			s.send(1, line3)
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
			s.groups[addrA].backoff = 0 // as if forgotten
			s.at(17)
			s.send(1, line2)
		}, want: RuleNotBefore},
		{name: "as long as the last fetch took", do: func(s story) {
			s.send(1, line1)
			s.at(13)
			s.status(1, "0.0.1 DONE 200")
			s.at(13)
			s.groups[addrA].last += time.Second
			s.send(1, line2)
		}, want: RuleFair},
		{name: "a line that was long on its way", do: func(s story) {
			s.line(1, line1, s.now)
			s.at(15)
			s.gone(1)
			s.at(15.5)
			s.send(2, "0.0.2 1 "+addrA+" http://a.test/1")
		}, want: RuleGapGroup},
	})
}
