package queuesched

// Reason is why a queue may not be served to a consumer.
type Reason uint8

const (
	Open           Reason = iota // it may be served
	NothingDue                   // nothing of it is scheduled
	BeingServed                  // a call serves it
	LimitReached                 // as many of its URLs are completed, or with the slots, as its limit allows
	HostBarred                   // a rule bars its host
	HostBlocked                  // the operator blocks its host
	QueueBlocked                 // it is blocked
	OutAtFrontier                // clients have URLs on its host
	OutAtSlots                   // the slots have URLs on its host
	OutRemote                    // other daemons have URLs on its host
	HostDelayOut                 // the operator delays its host, and the slots have URLs on it
	HostDelayed                  // the operator delays its host
	HostPaused                   // the slots have learned that the host is to be left alone
	HostPaced                    // a rule sets a gap for its host
	HostGapKept                  // the host wants a gap, and clients or other daemons had URLs on it
	SlotGap                      // the slots keep a gap
	QueueDelayOut                // it has a delay, and the slots have URLs of it
	QueueDelayed                 // it has a delay
	PassedOver                   // a moment ago nothing of it could be handed out
	NotYetDue                    // its first URL is scheduled for later
	AddressUnknown               // its host is being looked up, or a rule blocks the address
	AddressPaced                 // its address has a pace
	AddressInUse                 // clients have URLs of other queues at its address
	EnoughAhead                  // the slots have as many of its URLs as they take ahead
	EnoughOfDomain               // the slots have as many of its domain's URLs as they take ahead
	OverBudget                   // its domain overran its budget, and others go first
	TurnOver                     // the consumer has had its turn at the host, and the other side has not
	KeptForOthers                // its host is kept for the other side
)

// NotBefore returns when a queue may be served to a consumer, and the reason why not before, as far
// as the queue and the host that its key names go. Never says that some event has to come first. If
// other domains of the crawl have work, the budget of the queue's domain is a reason, too.
// domainsWithWork estimates that for queues on disk alone. A queue over the budget may be served
// earlier if no queue of the other domains may be. For the slots the budget is the reason even if a
// gap or a delay ends before the next round. For clients the gap or the delay is.
func (d *Scheduler) NotBefore(id uint32, consumer Consumer, now int64) (at int64, reason Reason) {
	at, reason = d.notBefore(d.queues.At(id), consumer, now, false)
	if at <= now && consumer == FrontierConsumer {
		at, reason = d.addressWait(id, now)
	}
	if reason == PassedOver && d.queues.At(id).flags&resting != 0 {
		reason = OverBudget
	}
	if b := d.BudgetOf(id, now); b.Left > 0 && at != Never && d.crawls[d.queues.At(id).crawl].domainsWithWork() > 1 {
		switch {
		case at <= now && reason == Open, reason == PassedOver:
			return max(at, b.Next), OverBudget
		case consumer == SlotConsumer && reason.isPace() && b.Next > at && b.Next != Never:
			return b.Next, OverBudget
		}
	}
	if at <= now && reason == Open && consumer == SlotConsumer && d.enoughOf(id) {
		return Never, EnoughOfDomain
	}
	return at, reason
}

// isPace reports whether a queue waits for a gap or a delay to pass.
func (r Reason) isPace() bool {
	switch r {
	case HostDelayed, HostPaced, HostGapKept, SlotGap, QueueDelayed:
		return true
	}
	return false
}

// notBefore is the list of all rules about when a queue may be served. The latest time counts; of
// equal times the first rule is the reason.
//
// placing says that the result decides in which ring the queue is. Then the rules about its host do
// not count if its URLs may be on any host: HostAvailable applies them to each URL. And OutRemote
// does not count for SlotConsumer, which shares its rings with RemoteConsumer: NextForSlots applies
// it.
func (d *Scheduler) notBefore(q *queue, consumer Consumer, now int64, placing bool) (at int64, reason Reason) {
	byHost := !placing || q.flags&anyHost == 0
	if reason = d.waitsForEvent(q, consumer, now, byHost, placing); reason != Open {
		return Never, reason
	}
	at = now
	not := func(until int64, by Reason) {
		if until > at {
			at, reason = until, by
		}
	}
	h := d.hosts.at(q.host)
	if byHost && h.overridden {
		not(d.hosts.overrides[q.host].blocked, HostBlocked)
	}
	not(q.blocked, QueueBlocked)
	if byHost {
		not(d.hosts.overrideNotBefore(q.host, consumer), HostDelayed)
		not(d.keptUntil(q.host, consumer), KeptForOthers)
	}
	if consumer == FrontierConsumer {
		if byHost {
			not(h.pausedUntil, HostPaused)
		}
		not(after(q.served[SlotConsumer], d.delayOf(q)), QueueDelayed)
	} else {
		if byHost {
			not(h.restoredUntil, HostPaused)
		}
		not(after(q.served[SlotConsumer], d.chosenDelay(q)), QueueDelayed)
	}
	if byHost {
		if gap := d.hosts.gapNotBefore(h, consumer.queueSide()); gap > at {
			at, reason = gap, d.hosts.gapReason(h, consumer)
		}
	}
	not(after(q.served[FrontierConsumer], d.delayOf(q)), QueueDelayed)
	not(q.skipUntil, PassedOver)
	not(q.due, NotYetDue)
	return at, reason
}

// waitsForEvent is the part of notBefore with the rules that no time ends.
func (d *Scheduler) waitsForEvent(q *queue, consumer Consumer, now int64, byHost, placing bool) Reason {
	switch {
	case q.due == Never:
		return NothingDue
	case q.flags&serving != 0:
		return BeingServed
	case q.full(consumer):
		return LimitReached
	}
	h := d.hosts.at(q.host)
	slots := consumer != FrontierConsumer
	switch {
	case byHost && slots && h.out[FrontierConsumer] > 0:
		return OutAtFrontier
	case byHost && !slots && h.out[SlotConsumer] > 0:
		return OutAtSlots
	case byHost && h.out[RemoteConsumer] > 0 && (!slots || consumer == SlotConsumer && !placing):
		return OutRemote
	case byHost && h.overridden && d.hosts.overrideNotBefore(q.host, consumer) == Never:
		return HostDelayOut
	case slots && q.out[SlotConsumer] > 0 && d.chosenDelay(q) > 0:
		return QueueDelayOut
	case slots && q.flags&branched != 0 && d.ahead.Queue > 0 && q.out[SlotConsumer] >= d.ahead.Queue:
		return EnoughAhead
	case byHost && d.isTurnOver(h, consumer, now):
		return TurnOver
	case byHost && d.barredByRule(q.host, nil, consumer):
		return HostBarred
	}
	return Open
}

// gapReason returns which of the gaps of a host is the longest.
func (h *hosts) gapReason(one *host, consumer Consumer) Reason {
	frontier := consumer == FrontierConsumer
	rule := h.gapByRule(one)
	switch {
	case rule != barred && rule > max(one.gap, int64(one.backoff)) && (frontier || rule > h.slotGap):
		return HostPaced
	case frontier || max(one.gap, int64(one.backoff)) >= h.slotGap:
		return HostGapKept
	}
	return SlotGap
}

// HostGap returns the gap in ms that a queue's host wants, as the slots have learned it or a rule
// sets it.
func (d *Scheduler) HostGap(id uint32) int64 {
	return d.hosts.wantedGap(d.hosts.at(d.queues.At(id).host))
}

// SlotGap returns the gap in ms that the slots keep.
func (d *Scheduler) SlotGap() int64 { return d.hosts.slotGap }

// QueueDelay returns the delay of a queue in ms; own: it is not that of all queues.
func (d *Scheduler) QueueDelay(id uint32) (ms int64, own bool) {
	q := d.queues.At(id)
	return d.delayOf(q), q.delay >= 0
}

// HostOut counts the URLs on a host that are in transit, by consumer.
func (d *Scheduler) HostOut(name []byte) (out [consumers]uint32) {
	if id := d.hosts.find(name); id != 0 {
		out = d.hosts.at(id).out
	}
	return out
}
