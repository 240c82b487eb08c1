//go:build faults

package shapes

// Fault is the rule that every Table of this build breaks.
var Fault fault

func faulty(f fault) bool { return Fault == f }
