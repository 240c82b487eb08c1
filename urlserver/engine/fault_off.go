//go:build !faults

package engine

// faulty reports whether a rule is to be broken on purpose: never, but in
// builds with the tag "faults", which show that the simulation's oracle bites.
func faulty(fault) bool { return false }
