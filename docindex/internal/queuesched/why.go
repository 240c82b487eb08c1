package queuesched

// Rule is why a queue may not be served at a door.
type Rule uint8

const (
	Open          Rule = iota // it may be served
	NothingDue                // nothing of it is scheduled
	AtACall                   // a call is being given some of it
	LimitReached              // so many of its URLs are completed, or at the slots
	HostBarred                // a rule bars its host
	HostBlocked               // an order blocks its host
	QueueBlocked              // it is blocked
	OutAtCalls                // URLs on its host are out at calls
	OutAtSlots                // at the slots
	OutLent                   // with other daemons
	HostDelayOut              // an order delays its host, and slots have something on that
	HostDelayed               // an order delays its host
	HostPaused                // the slots have learned that the host is to be left alone
	HostPaced                 // a rule names a gap for its host
	HostGap                   // the host wants a gap between two requests, and was given to calls or others
	SlotGap                   // the slots keep one
	QueueDelayOut             // it has a delay, and slots have something of it
	QueueDelayed              // it has a delay
	PassedOver                // nothing of it could be given a moment ago
	NotYetDue                 // its first URL is scheduled for later
)

// Why tells from when on a queue may be served at a door, as far as it and its host go, and by which rule not before; Never
// says that something else has to happen first.
func (d *Doors) Why(id uint32, door Door, now int64) (at int64, rule Rule) {
	q := d.queues.At(id)
	h := d.hosts.at(q.host)
	at = now
	not := func(until int64, by Rule) {
		if until > at {
			at, rule = until, by
		}
	}
	never := func(is bool, by Rule) {
		if is {
			not(Never, by)
		}
	}
	never(q.due == Never, NothingDue)
	never(q.flags&serving != 0, AtACall)
	never(q.full(door), LimitReached)
	never(door != Calls && h.out[Calls] > 0, OutAtCalls)
	never(door == Calls && h.out[Slots] > 0, OutAtSlots)
	never(door != Lent && h.out[Lent] > 0, OutLent)
	never(d.hosts.allowed(q.host, door) == Never, HostDelayOut)
	never(door != Calls && d.ownPace(q) > 0 && q.out[Slots] > 0, QueueDelayOut)
	never(d.bars(q.host, nil, door), HostBarred)
	not(d.hosts.orders[q.host].blocked, HostBlocked)
	not(q.blocked, QueueBlocked)
	not(d.hosts.allowed(q.host, door), HostDelayed)
	if door == Calls {
		not(h.pause, HostPaused)
		not(after(q.served[Slots], d.pace(q)), QueueDelayed)
	} else {
		not(h.before, HostPaused)
		not(after(q.served[Slots], d.ownPace(q)), QueueDelayed)
	}
	if rule := d.hosts.ruled(h); rule != barred && rule > h.gap && (door == Calls || rule > d.hosts.slotGap) {
		not(d.hosts.free(h, door.side()), HostPaced)
	}
	if h.gap >= d.hosts.slotGap || door == Calls {
		not(d.hosts.free(h, door.side()), HostGap)
	}
	not(d.hosts.free(h, door.side()), SlotGap)
	not(after(q.served[Calls], d.pace(q)), QueueDelayed)
	not(q.rest, PassedOver)
	not(q.due, NotYetDue)
	return at, rule
}

// Wants is the gap that a queue's host wants, as the slots have learned or as a rule has it, ms.
func (d *Doors) Wants(id uint32) int64 {
	h := d.hosts.at(d.queues.At(id).host)
	if rule := d.hosts.ruled(h); rule != barred {
		return max(h.gap, rule)
	}
	return h.gap
}

// SlotGap is the gap that the slots keep, ms.
func (d *Doors) SlotGap() int64 { return d.hosts.slotGap }

// Pace is the delay of a queue, ms; own says that it is not that of all.
func (d *Doors) Pace(id uint32) (ms int64, own bool) {
	q := d.queues.At(id)
	return d.pace(q), q.delay >= 0
}

// HostOut counts the URLs on a host that are in transit, by door.
func (d *Doors) HostOut(name []byte) (out [all]uint32) {
	if id := d.hosts.find(name); id != 0 {
		out = d.hosts.at(id).out
	}
	return out
}
