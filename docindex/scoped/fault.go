package scoped

import "urlserver/internal/scope"

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

// The first faults are those of the rules of a scope, by their numbers: the rule refuses nothing.
const (
	FaultNone      = fault(scope.InScope)
	FaultUntil     = fault(scope.Until)
	FaultDepth     = fault(scope.Depth)
	FaultDomain    = fault(scope.Domain)
	FaultExtension = fault(scope.Extension)
	FaultDeny      = fault(scope.Deny)
	FaultAllow     = fault(scope.Allow)
	FaultPages     = fault(scope.Pages)
	FaultPerDomain = fault(scope.PagesDomain)
)

// Faults of what a store does with scopes.
const (
	FaultRefuse  = FaultPerDomain + 1 + iota // some documents are refused that are in scope
	FaultStopped                             // a crawl that was stopped takes documents
	FaultVia                                 // a link is as deep as its page
	FaultSend                                // a changed scope does not hold for stored documents
	FaultRecall                              // documents that the slots have are not recalled
	FaultAgain                               // documents that a wider scope has again are not scheduled
	FaultLate                                // an end as out_of_scope stands, even if the document is in scope by then
	FaultTwice                               // documents in the slots end in the store, too
)
