//go:build faults

package hostslots

// Fault is the rule that each Slots of this build breaks. Set it before New.
var Fault fault

func faulty(f fault) bool { return Fault == f }
