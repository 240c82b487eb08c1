package hostslots

// fault names a rule that a build with the tag "faults" can break.
type fault uint8

const (
	faultNone       fault = iota
	faultGap              // the gap between two requests is halved
	faultConcurrent       // a group is asked while its requests are open
	faultForget           // a group's times are lost with its slot
	faultCarry            // a host that moves leaves its times behind
	faultLose             // what was at a spider that went away is lost
	faultStale            // a status for an ended transaction ends the next one
	faultRetry            // a document that timed out goes out at once, off the group's pace
	faultDelay            // Crawl-delay is not kept
	faultBackoff          // 429 and 503 do not slow a group down
	faultRetryAfter       // Retry-After is not kept
	faultFair             // the last fetch's time does not slow a group down
	faultStart            // groups do not count as asked at the start
	faultOrder            // younger documents go first
	faultPriority         // priority does not count
	faultAttempts         // a document is sent as often as it takes
	faultHeld             // a document that is held is taken again
	faultGeneration       // names of transactions come again
	faultBlock            // blocked hosts are asked
	faultSilence          // silence is noticed late
	faultLimits           // limits on hosts are not kept
	faultReject           // hosts of full groups are not rejected
	faultJoin             // a group is asked while requests to hosts that are to join it are open
)
