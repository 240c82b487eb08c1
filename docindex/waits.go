package docindex

import "time"

// Wait is why a queue may not be served now: a rule, and those of the values below that belong to
// it. It is comparable. Package urlserver/explain phrases it.
type Wait struct {
	Rule  WaitRule
	Crawl string        // of the queue
	Count uint64        // URLs that are in transit, the limit that is reached, or pages
	Round uint32        // of the domain's budget, from 1 on
	Gap   time.Duration // the delay, or the gap between two requests
	Level WaitLevel     // of WaitAddress and WaitAddressInUse: which of the two holds the queue back
	Name  string        // of that site, address or shared network, or the registered domain
	Sites string        // the sites that made the address back off; "": it does not
}

// WaitLevel is a level of politeness.
type WaitLevel uint8

// The levels.
const (
	SiteWait WaitLevel = iota
	AddressWait
	NetworkWait // of a shared network
)

// WaitRule says by which rule a queue may not be served.
type WaitRule uint8

// The rules.
const (
	NoWait                WaitRule = iota // it may be served
	WaitNothingScheduled                  // no URL of the queue is scheduled
	WaitBeingServed                       // a URL Frontier client is being served from the queue
	WaitLimit                             // Count URLs are completed, the queue's limit
	WaitRuleBlocks                        // a rule of the settings blocks the host
	WaitHostBlocked                       // the operator blocks the host
	WaitQueueBlocked                      // the queue is blocked
	WaitAtFrontier                        // Count URLs of the host are with URL Frontier clients
	WaitAtSlots                           // Count URLs of the host are in slots
	WaitRemote                            // Count URLs of the host are with daemons over HTTP
	WaitHostDelayInSlots                  // as WaitHostDelay, and slots have a URL of the host
	WaitHostDelay                         // the operator's delay of the host is Gap
	WaitHostPaused                        // the slots know when the host may be requested again
	WaitRuleGap                           // a rule of the settings sets Gap for the host
	WaitHostGap                           // the host wants Gap
	WaitSlotGap                           // the slots keep Gap
	WaitQueueDelayInSlots                 // as WaitQueueDelay, and slots have a URL of the queue
	WaitQueueDelay                        // the queue's delay is Gap
	WaitAllDelayed                        // the delay of all queues is Gap
	WaitPassedOver                        // no URL of the queue could be handed out a moment ago
	WaitScheduled                         // the queue's first URL is scheduled for later
	WaitAddressUnknown                    // the host is being looked up, or a rule blocks its address
	WaitAddress                           // Gap is kept between two requests at the Level; Count queues wait there
	WaitAddressInUse                      // clients have URLs of as many queues at the Level as may be open
	WaitInactive                          // URL Frontier clients are given nothing (SetActive)
	WaitShapes                            // links take turns by their shapes, and slots have Count URLs, enough ahead
	WaitDomain                            // slots have Count URLs of the domain Name, enough ahead
	WaitTurnOver                          // the other side, slots or clients, is next when all are back
	WaitOthersTurn                        // the host is kept for the other side
	WaitOverBudget                        // others go before the domain Name: Round begins after Count pages of Crawl
)
