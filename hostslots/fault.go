package hostslots

// fault is a rule that a build with the tag "faults" can break, for mutation tests.
type fault uint8

const (
	FaultNone           fault = iota
	FaultGap                  // the gap between two requests is halved
	FaultConcurrent           // a group gets more open requests than allowed
	FaultForget               // a group loses its pace with its slot
	FaultCarry                // a host that changes groups does not carry its times along
	FaultLose                 // documents in flight are lost with their spider
	FaultStale                // a status for an ended transaction ends the next one
	FaultRetry                // a document that comes back is sent at once
	FaultDelay                // Crawl-delay is not obeyed
	FaultBackoff              // 429 and 503 do not slow a group down
	FaultRetryAfter           // Retry-After is not obeyed
	FaultFair                 // DelayFactor is ignored
	FaultStart                // the start does not count as a request
	FaultOrder                // younger documents go first
	FaultPriority             // priority is ignored
	FaultAttempts             // attempts are not limited
	FaultHeld                 // a held document is accepted again
	FaultGeneration           // names of transactions are used again
	FaultBlock                // requests are sent to blocked hosts
	FaultSilence              // silent transactions are noticed late
	FaultLimits               // limits of hosts are not obeyed
	FaultReject               // hosts of full groups are not rejected
	FaultJoin                 // a group does not wait for hosts that are to join it
	FaultBelow                // the open requests to hosts that are to be below a group do not count there
	FaultSiteGap              // the gap between two requests to a site is halved
	FaultSiteOpen             // a site gets any number of open requests
	FaultNeighbours           // Retry-After of a site binds the other sites of its address
	FaultAddressBackoff       // an address does not back off, however many of its sites fail
	FaultRestore              // how an address backed off before the start is forgotten
	FaultPauses               // which sites were to be left alone before the start is forgotten
	FaultCap                  // sites of a shared network ignore its limits
	FaultBackPace             // a document given back does not count for the pace
	FaultBackAttempt          // a document given back counts as an attempt
)
