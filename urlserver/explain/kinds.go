package explain

// Kind tells reasons apart.
type Kind uint8

const (
	None Kind = iota

	// The host or the daemon as a whole is kept from sending.

	BlockedByOperator
	BlockedByRule
	Stopping
	Paused
	OutcomesFull

	// There is nothing to send.

	AllAtSpiders
	NothingHeld

	// Its name or its address is not known. Args[0] of all but NameUnasked: since when the name
	// fails.

	NameUnasked // its look-up failed while no name server could be used
	NameServersDown
	NameGivenUp
	NameFails       // Args[1]: the next look-up
	NameFailsAsking // a look-up is under way
	AddressUnknown
	AddressEnded // its TTL has passed
	AddressBound // Args[0]: the address of its binding
	BindingAwaited
	AliasChanged

	// Its group is not ready. Args[0] is the group, unless said otherwise.

	Regrouping
	AllOpen     // Args: open requests, limit, level, name
	JoinPending // Args[1]: the host with the open request
	NoSlot      // Args[1]: the number of slots
	NotLeased
	GapNotOver
	InLine       // Args: level, the shared network or address, how many sites wait for it
	NetworkShare // Args: slices that this daemon has, all slices, the shared network

	// Its robots.txt is not ready.

	VerdictPending // Args[0]: the number of its rules
	RobotsTargetBlocked
	RobotsUnreachable
	RobotsPending

	// By of RobotsTargetBlocked. Args[0] is the host that robots.txt redirects to.

	TargetBlockedByOperator
	TargetBlockedByRule
	TargetWasBlocked

	// It is due, and spiders have no room.

	SpiderStuck
	SpiderMute
	NoRoom
	TakesTurns // Args: the number of other hosts, the group
	DueNow

	// Some of its documents are for certain spiders. Args: the quoted name of the pool, the name.

	SuspectsWait
	UnnamedWait
	PoolFull
	PoolEmpty
	GivenBack

	// NotBefore tells when it may be asked. Its By is one of the next. Args[0] is the gap.

	NotBefore
	PaceRetryAfter
	PaceBeforeStart
	PaceLastFetch // Args[0]: politeness.delay_factor
	PaceBackoff
	PaceCrawlDelay
	PaceCrawlDelayOther // Args[1]: the group
	PaceGap
	PaceGapSinceStart
	PaceAddressGap     // Args[1]: the address
	PaceAddressBackoff // By: the sites that are the cause; Args[1]: the address
	PaceNetworkGap     // Args[1]: the shared network
	PaceLeftShared     // Args[0]: the address

	// The doc index is not asked for documents of it.

	LeftOutBlocked
	LeftOutName // By: how its name fails
	LeftOutFull // Args[0]: the group
	UnaskedOutcomesFull
	UnaskedNoSpider
	UnaskedLeftoverFull // Args[0]: leftover.max
	UnaskedPayloads     // Args[0]: MiB of payloads that may be held
	UnaskedSlotsFull    // Args[0]: the number of slots
	UnaskedAsking
	UnaskedBackoff

	// What the doc index knows of it. Args[0] is a number of documents.

	IndexSilent // By: the error
	IndexBlocked
	OutElsewhere // By: where
	MoreWait
	OnlyInIndex
	AllCompleted
	BlockedAndUnknown
	DelayedAndUnknown // Args[0]: the operator's delay
	DelayKept         // Args[0]: the operator's delay
	InIndex           // By: a rule of the doc index
	OverBudget        // By: a rule of the doc index
	IndexFailed       // By: the error
	ComesNext
	ClientsWait // By: a rule of the doc index
	ClientsMayHaveIt

	// What the reservation knows of its group.

	LeaseHeld    // By: the holder; Args[0]: until when
	LeaseWaits   // By: the rule; Args[0]: until when
	LeaseState   // Args[0]: the state
	LeaseSilent  // By: the error
	GroupUnknown // By: the error

	kinds
)

// words are the texts of reasons: {until}, {by} and {N} stand for the Until, the By and Args[N].
var words = [kinds]string{
	BlockedByOperator: "blocked by the operator until {until}",
	BlockedByRule:     "blocked by {by}",
	Stopping:          "the daemon is stopping",
	Paused:            "sending is paused by the operator; urlserver resume ends that",
	OutcomesFull: "outcomes cannot be delivered to the doc index and docindex.outcomes_max is reached: " +
		"sending waits",

	AllAtSpiders: "all its documents are at spiders ({0})",
	NothingHeld:  "no document is held for it; the doc index has offered none that is new",

	NameUnasked: "its name failed to resolve: {by}; it is looked up again now",
	NameServersDown: "its name fails to resolve since {0}: {by}; " +
		"it is looked up again and again, and nothing ends for that",
	NameGivenUp: "its name has failed since {0}, and was given up (resolver.give_up): {by}; " +
		"what comes of it ends as dns",
	NameFails: "its name fails to resolve since {0}: {by}; it is looked up again at {1}; " +
		"if it still fails at {until} its documents end as dns (resolver.give_up)",
	NameFailsAsking: "its name fails to resolve since {0}: {by}; it is being looked up again; " +
		"if it still fails at {until} its documents end as dns (resolver.give_up)",
	AddressUnknown: "its address is being looked up",
	AddressEnded:   "its address is looked up again, since what was known of it has ended",
	AddressBound: "its address has changed: the reservation has it at {0}, where another daemon may " +
		"ask it; it goes on at its new address when that has ended",
	BindingAwaited: "this daemon and the binding of its name in the reservation disagree on whether " +
		"its address is on a shared network, since rules have changed or another daemon finds " +
		"another address; it waits until its binding ends",
	AliasChanged: "its alias or that of its address has changed, and other daemons may have to leave its " +
		"former group; until {until} nobody asks it in its new one",

	Regrouping: "goes to another group, since the rules or its address have changed, " +
		"when the requests to it that are open have ended",
	AllOpen:     "{0} of {1} requests allowed to the {2} {3} are open ({by}); waits for one to end",
	JoinPending: "its group {0} waits for an open request to {1}, which is to join it by {by}",
	NoSlot:      "its group {0} waits for a host slot; all {1} are taken (Queue_Count)",
	NotLeased:   "its group {0} is not reserved: the reservation is asked again and again",
	GapNotOver:  "it may not be asked yet",
	InLine:      "waits in line for the {0} {1}, as {2} sites do there",
	NetworkShare: "this daemon has {0} of the {1} slices into which daemons divide what the " +
		"shared network {2} allows",

	VerdictPending: "it takes long to tell what its robots.txt allows, which has {0} rules: " +
		"the next documents wait for that, in turn with those of other hosts",
	RobotsTargetBlocked: "its robots.txt redirects to {by}: " +
		"that forbids everything until it is tried again at {until}",
	RobotsUnreachable: "its robots.txt could not be had, " +
		"which forbids everything until it is tried again at {until}",
	RobotsPending:           "its robots.txt is fetched first",
	TargetBlockedByOperator: "{0}, which is blocked by the operator until {until}",
	TargetBlockedByRule:     "{0}, which is blocked by {by}",
	TargetWasBlocked:        "{0}, which was blocked when it was to be asked",

	SpiderStuck: "due now; a spider does not read its lines and gets no more until it does; " +
		"no other one is connected that has room (spider.max_in_flight)",
	SpiderMute: "due now; a spider has not answered yet and gets nothing more until it does; " +
		"no other one is connected that has room (spider.max_in_flight)",
	NoRoom:     "due now; no spider is connected that has room (spider.max_in_flight)",
	TakesTurns: "due now; takes turns with {0} other hosts on {1}",
	DueNow:     "due now; goes out with the next sending",

	SuspectsWait: "what was at a spider whose connection was lost goes out again beside few others: " +
		"waits for a spider with so few in flight",
	UnnamedWait: "what names no spiderid waits for a spider that has not said SPIDER, and has room",
	PoolFull:    "what is for spiderid {0} waits until a spider that has said SPIDER {1} has room",
	GivenBack: "a spider gave documents back (BACK): they wait for as long as it said, or until " +
		"another spider has room",
	PoolEmpty: "what is for spiderid {0} waits: no spider is connected that has said SPIDER {1}, or nothing",

	NotBefore:           "not before {until}: {by}",
	PaceRetryAfter:      "Retry-After, which came with status 429 or 503 of the site",
	PaceBeforeStart:     "the site asked for that before the daemon was started",
	PaceLastFetch:       "politeness.delay_factor, {0} times as long as the last fetch took at the site",
	PaceBackoff:         "the site is backing off after status 429 or 503, gap {0}",
	PaceCrawlDelay:      "Crawl-delay of its robots.txt, {0} between two requests to the site",
	PaceCrawlDelayOther: "Crawl-delay of another host of {1}, {0}",
	PaceGap:             "{by}, one request in {0} to the site",
	PaceGapSinceStart: "{by}, one request in {0} to the site; " +
		"every host counts as asked when the daemon started",
	PaceAddressGap: "{by}, one request in {0} to all sites on the address {1}",
	PaceAddressBackoff: "the address {1} backs off, gap {0}, since several of its sites answered " +
		"429 or 503: {by}",
	PaceNetworkGap: "the limits of the shared network {1}, one request in {0} to all its sites",
	PaceLeftShared: "the address {0} was on a shared network until the settings were read again",

	LeftOutBlocked: "the doc index is asked to leave it out: it is blocked by {by}",
	LeftOutName:    "the doc index is asked to leave it out: {by}",
	LeftOutFull: "the doc index is asked to leave out hosts on {0}: " +
		"as much of them is held as may be (Queue_Len, vhosts.reject_over)",
	UnaskedOutcomesFull: "outcomes cannot be delivered to the doc index and docindex.outcomes_max " +
		"is reached: nothing is asked for",
	UnaskedNoSpider: "no spider is connected that takes documents, so host slots take nothing from those who have " +
		"other ways to fetch it",
	UnaskedPayloads:     "payloads of held documents take as much memory as they may ({0} MiB)",
	UnaskedLeftoverFull: "as many documents wait for slots as may (leftover.max, {0})",
	UnaskedSlotsFull: "all {0} host slots are taken (Queue_Count), or enough documents wait for " +
		"them or for DNS; those are first",
	UnaskedAsking: "the doc index is being asked right now",
	UnaskedBackoff: "the doc index had nothing new, and is asked again at {until} " +
		"(docindex.retry, docindex.max_retry)",

	IndexSilent:  "the doc index does not answer: {by}",
	IndexBlocked: "what waits in the doc index is blocked by the operator until {until}",
	OutElsewhere: "{0} of its documents are out, but not here: {by}; " +
		"until they are back or their leases end nothing of it is sent from here",
	MoreWait:          "{0} more wait in the doc index",
	OnlyInIndex:       "nothing of it is held here; {0} of its documents wait in the doc index",
	AllCompleted:      "nothing is to be fetched: all its documents in the doc index are completed ({0})",
	BlockedAndUnknown: "blocked by the operator until {until}; no document of it is known",
	DelayedAndUnknown: "no document of it is known; the operator's delay of {0} will hold for what comes",
	DelayKept:         "the operator's delay of {0} will hold for what comes",
	InIndex:           "{by}",
	OverBudget:        "{by}; at the pace of late that is about {until}",
	IndexFailed:       "the doc index failed: {by}",
	ComesNext:         "due now; it comes with the next request to the doc index",
	ClientsWait:       "to clients of the URL Frontier: {by}",
	ClientsMayHaveIt:  "clients of the URL Frontier may have it now",

	LeaseHeld:    "{by} has it until {0}",
	LeaseWaits:   "the reservation: not before {0}, {by}",
	LeaseState:   "in the reservation its group is {0}",
	LeaseSilent:  "the reservation does not answer: {by}",
	GroupUnknown: "the reservation, which knows its group, does not answer: {by}",
}
