//go:build faults

package memory

import (
	"urlserver/docindex/internal/queuesched"
	"urlserver/docindex/internal/shapes"
)

// Fault is the rule of the order of documents that every Store of this build breaks.
var Fault = &queuesched.Fault

// ShapesFault is the rule of the turns of shapes that every Store of this build breaks.
var ShapesFault = &shapes.Fault

// What Fault can be.
const (
	FaultNone    = queuesched.FaultNone
	FaultBudget  = queuesched.FaultBudget
	FaultStretch = queuesched.FaultStretch
	FaultEarly   = queuesched.FaultEarly
	FaultAhead   = queuesched.FaultAhead

	FaultNoShape = shapes.FaultNone
	FaultTurns   = shapes.FaultTurns
)
