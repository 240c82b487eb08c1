package sim

import (
	"net/netip"
	"testing"

	"urlserver/docindex"
)

// TestOracleOfEnds tests outcomes and requests to the index.
func TestOracleOfEnds(t *testing.T) {
	runStories(t, []storyTest{
		{name: "an outcome too many", do: func(s story) {
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 200", "1", 200)
			s.ends("1", docindex.Done, 200, 1)
		}, want: RuleOutcome},
		{name: "an outcome too few", do: func(s story) {
			s.send(1, line1)
			s.status(1, "0.0.1 DONE 200")
			s.stepped()
		}, want: RuleOutcome},
		{name: "done without DONE", do: func(s story) {
			s.send(1, line1)
			s.ends("1", docindex.Done, 200, 1)
		}, want: RuleOutcome},
		{name: "DONE of another spider", do: func(s story) {
			s.send(1, line1)
			s.done(2, "0.0.1 DONE 200", "1", 200)
		}, want: RuleOutcome},
		{name: "DONE with the wrong status", do: func(s story) {
			s.send(1, line1)
			s.done(1, "0.0.1 DONE 404", "1", 200)
		}, want: RuleOutcome},
		{name: "given up with attempts left", do: func(s story) {
			s.send(1, line1)
			s.gone(1)
			s.ends("1", docindex.Timeout, 0, 1)
		}, want: RuleOutcome},
		{name: "no address, but it has one", do: func(s story) { s.ends("1", docindex.DNS, 0, 0) },
			want: RuleOutcome},
		{name: "no address", do: func(s story) {
			s.resolved("a.test", netip.Addr{}, errNoAddress)
			s.ends("1", docindex.DNS, 0, 0)
		}},
		{name: "stopped by nobody", do: func(s story) { s.ends("1", docindex.Stopped, 0, 0) },
			want: RuleOutcome},
		{name: "not rejected", do: func(s story) {
			s.set.rejectOver = 1
			s.send(1, line1)
			s.asks = rejectEvery - 1
			s.asked([]string{"b.test"})
		}, want: RuleReject},
		{name: "two requests to the index", do: func(s story) {
			s.asked(nil)
			s.asked(nil)
		}, want: RuleAsk},
		{name: "a document lost", do: func(s story) { s.counts(3, 0, true) }, want: RuleHeld},
	})
}
