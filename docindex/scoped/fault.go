package scoped

import "urlserver/internal/scope"

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

// The first faults are those of the rules of a scope, by their numbers: the rule refuses nothing.
const (
	faultNone      = fault(scope.InScope)
	faultUntil     = fault(scope.Until)
	faultDepth     = fault(scope.Depth)
	faultDomain    = fault(scope.Domain)
	faultExtension = fault(scope.Extension)
	faultDeny      = fault(scope.Deny)
	faultAllow     = fault(scope.Allow)
	faultPages     = fault(scope.Pages)
	faultPerDomain = fault(scope.PagesDomain)
)

// Faults of what a store does with scopes.
const (
	faultRefuse  = faultPerDomain + 1 + iota // some documents are refused that are in scope
	faultStopped                             // a crawl that was stopped takes documents
	faultVia                                 // a link is as deep as its page
	faultSend                                // a changed scope does not hold for stored documents
	faultRecall                              // what the slots have is not recalled
	faultAgain                               // what a wider scope has again is not scheduled
	faultLate                                // what ends as out_of_scope stays so, whatever the scope is by then
	faultTwice                               // documents in the slots end in the store, too
)
