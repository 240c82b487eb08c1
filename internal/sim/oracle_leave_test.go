package sim

import (
	"testing"
	"time"
)

// TestOracleOfLeave is about what the operator and robots.txt allow.
func TestOracleOfLeave(t *testing.T) {
	tell(t, []told{
		{name: "while paused", do: func(s story) {
			s.mute(paused, true)
			s.send(1, line1)
		}, want: RuleMute},
		{name: "decided before the pause", do: func(s story) {
			s.mute(paused, true)
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
		{name: "robots.txt elsewhere binds where it began", do: func(s story) {
			s.set.robots = true
			s.robots(1, "a.test", robotsAnswer{status: 301, location: "http://b.test/robots.txt"})
			s.at(12)
			s.robots(1, "b.test", robotsAnswer{status: 404})
			s.at(14)
			s.send(1, line1)
		}},
	})
}
