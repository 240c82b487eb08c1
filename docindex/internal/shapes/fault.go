package shapes

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

// What can be broken.
const (
	FaultNone  fault = iota
	FaultTurns       // the first branch with something goes, whatever its turn
)
