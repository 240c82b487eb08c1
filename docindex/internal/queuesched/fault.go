package queuesched

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

// What can be broken.
const (
	FaultNone    fault = iota
	FaultBudget        // a domain that overruns its budget does not wait
	FaultStretch       // no round is longer than the first one
	FaultEarly         // a domain that waits goes on after half of it
	FaultAhead         // the slots take any number of documents of a domain ahead
)
