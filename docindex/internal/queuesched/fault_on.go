//go:build faults

package queuesched

// Fault is the rule that every Scheduler of this build breaks.
var Fault fault

func faulty(f fault) bool { return Fault == f }
