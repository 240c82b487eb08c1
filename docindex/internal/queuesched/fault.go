package queuesched

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

// What can be broken.
const (
	faultNone    fault = iota
	faultBudget        // a domain that overruns its budget does not wait
	faultStretch       // no round is longer than the first one
	faultEarly         // a domain that waits goes on after half of it
	faultAhead         // the slots take any number of documents of a domain ahead
)
