//go:build faults

package scoped

// Fault is the rule that every Store of this build breaks.
var Fault fault

func faulty(f fault) bool { return Fault == f }
