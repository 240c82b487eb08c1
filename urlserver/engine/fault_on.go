//go:build faults

package engine

// Fault is the rule that every Engine of this build breaks; set it before New.
var Fault fault

func faulty(f fault) bool { return Fault == f }
