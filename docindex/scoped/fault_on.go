//go:build faults

package scoped

// Fault is the rule that every Store of this build breaks.
var Fault fault

func faulty(f fault) bool { return Fault == f }

// What Fault can be.
const (
	FaultNone      = faultNone
	FaultUntil     = faultUntil
	FaultDepth     = faultDepth
	FaultDomain    = faultDomain
	FaultExtension = faultExtension
	FaultDeny      = faultDeny
	FaultAllow     = faultAllow
	FaultPages     = faultPages
	FaultPerDomain = faultPerDomain
	FaultRefuse    = faultRefuse
	FaultStopped   = faultStopped
	FaultVia       = faultVia
	FaultSend      = faultSend
	FaultRecall    = faultRecall
	FaultAgain     = faultAgain
	FaultLate      = faultLate
	FaultTwice     = faultTwice
)
