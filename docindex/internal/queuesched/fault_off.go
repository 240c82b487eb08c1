//go:build !faults

package queuesched

// faulty reports whether to break a rule on purpose. Only builds with the tag "faults" do that, to
// show that the oracle of the simulation finds each breach.
func faulty(fault) bool { return false }
