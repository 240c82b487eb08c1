package sim

import (
	"errors"
	"net/netip"
	"testing"
)

// TestOracleOfSending is about order, attempts and transactions.
func TestOracleOfSending(t *testing.T) {
	runStories(t, []storyTest{
		{name: "younger first", do: func(s story) { s.send(1, line2) }, want: RuleOrder},
		{name: "lower priority first", do: func(s story) {
			s.took("5", "http://a.test/5", 1)
			s.at(11)
			s.send(1, line1)
		}, want: RuleOrder},
		{name: "sent too often", do: func(s story) {
			s.set.delayFactor = 0
			s.send(1, line1)
			s.at(70)
			s.at(71)
			s.send(2, "0.0.2 1 "+addrA+" http://a.test/1")
			s.at(131)
			s.at(132)
			s.connected(3)
			s.send(3, "0.0.3 1 "+addrA+" http://a.test/1")
		}, want: RuleAttempts},
		{name: "sent twice at once", do: func(s story) {
			s.set.concurrent, s.set.siteOpen = 2, 2
			s.send(1, line1)
			s.at(12)
			s.send(2, "0.1.2 1 "+addrA+" http://a.test/1")
		}, want: RuleTwice},
		{name: "too many at a spider", do: func(s story) {
			s.set.inFlight = 0
			s.send(1, line1)
		}, want: RuleInFlight},
		{name: "a TRANS_ID comes again", do: func(s story) {
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 200")
			s.at(12)
			s.send(1, "0.0.1 2 "+addrA+" http://a.test/2")
		}, want: RuleTransaction},
	})
}

// failsAndSends has a look-up of a host without documents fail for now. After some seconds the host gets a
// document, which is sent to the former address.
func (s story) failsAndSends(after float64) {
	s.name("c.test", addrA)
	s.resolved("c.test", netip.Addr{}, errors.New("it answered SERVFAIL"))
	s.holds("c.test", 0, errors.New("it answered SERVFAIL"))
	s.at(10 + after)
	s.took("5", "http://c.test/5", 5)
	s.send(1, "0.0.1 5 "+addrA+" http://c.test/5")
}

// TestOracleOfLines is about what a line says, and when a document comes back.
func TestOracleOfLines(t *testing.T) {
	runStories(t, []storyTest{
		{name: "an address that it does not have", do: func(s story) {
			s.send(1, "0.0.1 1 "+addrB+" http://a.test/1")
		}, want: RuleAddress},
		{name: "kept for a while after a look-up failed", do: func(s story) { s.failsAndSends(29) }},
		{name: "kept for long after a look-up failed", do: func(s story) { s.failsAndSends(31) }, want: RuleAddress},
		{name: "moved with documents held", do: func(s story) {
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 200")
			s.name("a.test", addrB)
			s.at(12)
			s.send(1, "1.0.1 2 "+addrB+" http://a.test/2")
		}},
		{name: "moved with a request open", do: func(s story) {
			s.send(1, line1)
			s.name("a.test", addrB)
			s.at(12)
			s.send(1, "1.0.1 2 "+addrB+" http://a.test/2")
		}, want: RuleAddress},
		{name: "moved, and asked where it was", do: func(s story) {
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 200")
			s.name("a.test", addrB)
			s.relocate()
			s.at(12)
			s.send(1, "0.0.2 2 "+addrA+" http://a.test/2")
		}, want: RuleAddress},
		{name: "another URL", do: func(s story) {
			s.send(1, "0.0.1 1 "+addrA+" http://a.test/other")
		}, want: RuleLine},
		{name: "no URL", do: func(s story) { s.send(1, "0.0.1 1 "+addrA) }, want: RuleLine},
		{name: "taken again in quarantine", do: func(s story) {
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.took("1", "http://a.test/1", 0)
			s.at(20)
			s.send(1, "0.0.2 1 "+addrA+" http://a.test/1")
		}, want: RuleLine},
		{name: "silence not noticed", do: func(s story) {
			s.send(1, line1)
			s.at(70.001)
		}, want: RuleTimeout},
		{name: "WORKING breaks the silence", do: func(s story) {
			s.send(1, line1)
			s.at(60)
			s.status(1, "0.0.1 WORKING")
			s.at(119)
		}},
		{name: "again, after a spider stood still with two", do: func(s story) { s.standsStill(40) }},
		{name: "again, after a spider went on with the other one",
			do: func(s story) { s.standsStill(40.001) }, want: RuleAttempts},
	})
}

// standsStill has a spider get two documents at 10 s and 11 s, say something of the second one at a
// moment, in seconds, and then nothing, until the connection ends at 70 s. The first one has had
// its only attempt, and is sent again.
func (s story) standsStill(from float64) {
	s.set.concurrent, s.set.siteOpen, s.set.attempts, s.set.delayFactor = 2, 2, 1, 0
	s.send(1, line1)
	s.at(11)
	s.send(1, line3)
	s.at(from)
	s.status(1, "0.1.2 WORKING")
	s.at(70)
	s.gone(1)
	s.at(72)
	s.send(2, "0.0.3 1 "+addrA+" http://a.test/1")
}
