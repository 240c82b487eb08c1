//go:build faults

package engine

// Fault is the rule that every Engine of this build breaks; set it before New.
var Fault fault

func faulty(f fault) bool { return Fault == f }

// What Fault can be.
const (
	FaultNone       = faultNone
	FaultSend       = faultSend
	FaultRobots     = faultRobots
	FaultUnasked    = faultUnasked
	FaultOld        = faultOld
	FaultAgain      = faultAgain
	FaultUnreported = faultUnreported
	FaultKind       = faultKind
	FaultQuarantine = faultQuarantine
	FaultRoom       = faultRoom
	FaultAlien      = faultAlien
	FaultWire       = faultWire
	FaultAddress    = faultAddress
	FaultGroup      = faultGroup
	FaultRules      = faultRules
	FaultAsk        = faultAsk
	FaultSleep      = faultSleep
	FaultSpin       = faultSpin
	FaultChoice     = faultChoice
	FaultPlaces     = faultPlaces
	FaultOnce       = faultOnce
	FaultNotes      = faultNotes
	FaultNoteAge    = faultNoteAge
	FaultGiveUp     = faultGiveUp
	FaultBlame      = faultBlame
	FaultHangUp     = faultHangUp
	FaultIntake     = faultIntake
	FaultStay       = faultStay
	FaultMemory     = faultMemory
	FaultVerdict    = faultVerdict
	FaultCharge     = faultCharge
	FaultSaid       = faultSaid
	FaultEarly      = faultEarly
	FaultBack       = faultBack
)
