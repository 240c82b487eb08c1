//go:build faults

package hostslots

// Fault is the rule that each Slots of this build breaks. Set it before New.
var Fault fault

func faulty(f fault) bool { return Fault == f }

// What Fault can be.
const (
	FaultNone       = faultNone
	FaultGap        = faultGap
	FaultConcurrent = faultConcurrent
	FaultForget     = faultForget
	FaultCarry      = faultCarry
	FaultLose       = faultLose
	FaultStale      = faultStale
	FaultRetry      = faultRetry
	FaultDelay      = faultDelay
	FaultBackoff    = faultBackoff
	FaultRetryAfter = faultRetryAfter
	FaultFair       = faultFair
	FaultStart      = faultStart
	FaultOrder      = faultOrder
	FaultPriority   = faultPriority
	FaultAttempts   = faultAttempts
	FaultHeld       = faultHeld
	FaultGeneration = faultGeneration
	FaultBlock      = faultBlock
	FaultSilence    = faultSilence
	FaultLimits     = faultLimits
	FaultReject     = faultReject
	FaultJoin       = faultJoin
	FaultBelow      = faultBelow

	FaultSiteGap        = faultSiteGap
	FaultSiteOpen       = faultSiteOpen
	FaultNeighbours     = faultNeighbours
	FaultAddressBackoff = faultAddressBackoff
	FaultRestore        = faultRestore
	FaultPauses         = faultPauses
	FaultCap            = faultCap
	FaultBackPace       = faultBackPace
	FaultBackAttempt    = faultBackAttempt
)
