//go:build faults

package memory

import "urlserver/docindex/internal/queuesched"

// Fault is the rule of the order of documents that every Store of this build breaks.
var Fault = &queuesched.Fault

// What Fault can be.
const (
	FaultNone    = queuesched.FaultNone
	FaultBudget  = queuesched.FaultBudget
	FaultStretch = queuesched.FaultStretch
	FaultEarly   = queuesched.FaultEarly
)
