//go:build !faults

package shapes

// faulty reports whether a rule is to be broken on purpose: never, except in builds with the tag
// "faults", which show that the oracle of the simulation finds each breach.
func faulty(fault) bool { return false }
