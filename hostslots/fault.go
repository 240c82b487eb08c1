package hostslots

// fault is a rule that a build with the tag "faults" can break, for mutation tests.
type fault uint8

const (
	faultNone           fault = iota
	faultGap                  // the gap between two requests is halved
	faultConcurrent           // a group gets more open requests than allowed
	faultForget               // a group loses its pace with its slot
	faultCarry                // a host that changes groups does not carry its times along
	faultLose                 // documents in flight are lost with their spider
	faultStale                // a status for an ended transaction ends the next one
	faultRetry                // a document that comes back is sent at once
	faultDelay                // Crawl-delay is not obeyed
	faultBackoff              // 429 and 503 do not slow a group down
	faultRetryAfter           // Retry-After is not obeyed
	faultFair                 // DelayFactor is ignored
	faultStart                // the start does not count as a request
	faultOrder                // younger documents go first
	faultPriority             // priority is ignored
	faultAttempts             // attempts are not limited
	faultHeld                 // a held document is accepted again
	faultGeneration           // names of transactions are used again
	faultBlock                // requests are sent to blocked hosts
	faultSilence              // silent transactions are noticed late
	faultLimits               // limits of hosts are not obeyed
	faultReject               // hosts of full groups are not rejected
	faultJoin                 // a group does not wait for hosts that are to join it
	faultBelow                // the open requests to hosts that are to be below a group do not count there
	faultSiteGap              // the gap between two requests to a site is halved
	faultSiteOpen             // a site gets any number of open requests
	faultNeighbours           // Retry-After of a site binds the other sites of its address
	faultAddressBackoff       // an address does not back off, however many of its sites fail
	faultRestore              // how an address backed off before the start is forgotten
	faultPauses               // which sites were to be left alone before the start is forgotten
	faultCap                  // sites of a shared network ignore its limits
	faultBackPace             // a document given back does not count for the pace
	faultBackAttempt          // a document given back counts as an attempt
)
