package embedded

import (
	"cmp"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// MaxHostQueues is how many queues of a host HostStatus looks at: some hundred microseconds.
const MaxHostQueues = 1000

// HostStatus returns the status of a host; active: URL Frontier clients are served.
func HostStatus(d *queuesched.Scheduler, host []byte, active bool, now int64) (l docindex.HostStatus) {
	best := [2]earliest{{at: queuesched.Never}, {at: queuesched.Never}}
	d.QueuesOf(host, func(id uint32) bool {
		if l.Queues == MaxHostQueues {
			l.Truncated = true
			return false
		}
		n := d.QueueTotal(id)
		l.Scheduled, l.InTransit, l.Completed = l.Scheduled+n.URLs[docindex.Scheduled],
			l.InTransit+n.URLs[docindex.InTransit], l.Completed+n.URLs[docindex.Completed]
		l.Queues, l.Active = l.Queues+n.Queues, l.Active+n.Active
		for consumer := range best {
			best[consumer].consider(d, id, queuesched.Consumer(consumer), now)
		}
		return true
	})
	out := d.HostOut(host)
	l.Transit = docindex.TransitCounts{Slots: uint64(out[queuesched.SlotConsumer]),
		Frontier: uint64(out[queuesched.FrontierConsumer]), Remote: uint64(out[queuesched.RemoteConsumer])}
	order := d.HostOverride(host)
	if order.Blocked != nil && *order.Blocked > now {
		l.Blocked = time.UnixMilli(*order.Blocked).UTC()
	}
	if order.Delay != nil {
		l.Delay = time.Duration(*order.Delay) * time.Millisecond
	}
	l.AtSlots, l.AtFrontier = best[queuesched.SlotConsumer].availability(d, &l, now),
		best[queuesched.FrontierConsumer].availability(d, &l, now)
	if id := best[queuesched.FrontierConsumer].id; id != 0 {
		l.Site, l.Address = d.Levels(id)
	}
	if !active {
		l.AtFrontier = docindex.Availability{Wait: docindex.Wait{Rule: docindex.WaitInactive}}
	}
	return l
}

// earliest is the queue of a host that a consumer may be served first.
type earliest struct {
	id     uint32 // 0: there is none
	at     int64
	reason queuesched.Reason
}

// consider replaces f by a queue that may be served earlier. Among queues that wait for events it
// prefers those that have something scheduled.
func (f *earliest) consider(d *queuesched.Scheduler, id uint32, consumer queuesched.Consumer, now int64) {
	at, rule := d.NotBefore(id, consumer, now)
	if f.id == 0 || cmp.Or(cmp.Compare(at, f.at), cmp.Compare(f.rank(), rank(rule))) < 0 {
		*f = earliest{id, at, rule}
	}
}

func (f *earliest) rank() int { return rank(f.reason) }

// rank is low for a reason that says little.
func rank(r queuesched.Reason) int {
	if r == queuesched.NothingDue {
		return 0
	}
	return 1
}

func (f *earliest) availability(d *queuesched.Scheduler, l *docindex.HostStatus,
	now int64) (t docindex.Availability) {
	if f.id == 0 || f.reason == queuesched.Open {
		t.Open = f.id != 0
		return t
	}
	if f.at != queuesched.Never {
		t.NotBefore = time.UnixMilli(f.at).UTC()
	}
	t.Wait = f.wait(d, l, now)
	return t
}

// waitRules translates the reasons of the scheduler to those of the contract.
var waitRules = [...]docindex.WaitRule{
	queuesched.NothingDue:     docindex.WaitNothingScheduled,
	queuesched.BeingServed:    docindex.WaitBeingServed,
	queuesched.LimitReached:   docindex.WaitLimit,
	queuesched.HostBarred:     docindex.WaitRuleBlocks,
	queuesched.HostBlocked:    docindex.WaitHostBlocked,
	queuesched.QueueBlocked:   docindex.WaitQueueBlocked,
	queuesched.OutAtFrontier:  docindex.WaitAtFrontier,
	queuesched.OutAtSlots:     docindex.WaitAtSlots,
	queuesched.OutRemote:      docindex.WaitRemote,
	queuesched.HostDelayOut:   docindex.WaitHostDelayInSlots,
	queuesched.HostDelayed:    docindex.WaitHostDelay,
	queuesched.HostPaused:     docindex.WaitHostPaused,
	queuesched.HostPaced:      docindex.WaitRuleGap,
	queuesched.HostGapKept:    docindex.WaitHostGap,
	queuesched.SlotGap:        docindex.WaitSlotGap,
	queuesched.QueueDelayOut:  docindex.WaitQueueDelayInSlots,
	queuesched.QueueDelayed:   docindex.WaitQueueDelay,
	queuesched.PassedOver:     docindex.WaitPassedOver,
	queuesched.NotYetDue:      docindex.WaitScheduled,
	queuesched.AddressUnknown: docindex.WaitAddressUnknown,
	queuesched.AddressPaced:   docindex.WaitAddress,
	queuesched.AddressInUse:   docindex.WaitAddressInUse,
	queuesched.EnoughAhead:    docindex.WaitShapes,
	queuesched.EnoughOfDomain: docindex.WaitDomain,
	queuesched.OverBudget:     docindex.WaitOverBudget,
	queuesched.TurnOver:       docindex.WaitTurnOver,
	queuesched.KeptForOthers:  docindex.WaitOthersTurn,
}

// wait fills in the values that belong to the reason.
func (f *earliest) wait(d *queuesched.Scheduler, l *docindex.HostStatus, now int64) docindex.Wait {
	w := docindex.Wait{Rule: waitRules[f.reason]}
	delay, own := d.QueueDelay(f.id)
	switch f.reason {
	case queuesched.LimitReached:
		w.Crawl = d.Crawl(f.id)
		if p := d.SettingsOf(f.id).Limit; p != nil {
			w.Count = uint64(*p)
		}
	case queuesched.QueueBlocked, queuesched.PassedOver:
		w.Crawl = d.Crawl(f.id)
	case queuesched.OutAtFrontier:
		w.Count = l.Transit.Frontier
	case queuesched.OutAtSlots, queuesched.EnoughAhead:
		w.Count = l.Transit.Slots
	case queuesched.OutRemote:
		w.Count = l.Transit.Remote
	case queuesched.HostDelayOut, queuesched.HostDelayed:
		w.Gap = l.Delay
	case queuesched.HostPaced, queuesched.HostGapKept:
		w.Gap = ms(d.HostGap(f.id))
	case queuesched.SlotGap:
		w.Gap = ms(d.SlotGap())
	case queuesched.AddressPaced, queuesched.AddressInUse:
		w = d.AddressWait(f.id, now)
	case queuesched.EnoughOfDomain:
		w.Crawl, w.Name = d.Crawl(f.id), d.BudgetOf(f.id, now).Domain
		w.Count = uint64(d.AtSlotsOfDomain(f.id))
	case queuesched.OverBudget:
		b := d.BudgetOf(f.id, now)
		w.Crawl, w.Name, w.Round, w.Count = d.Crawl(f.id), b.Domain, b.Round, b.Left
	case queuesched.QueueDelayOut:
		w.Crawl, w.Gap = d.Crawl(f.id), ms(delay)
	case queuesched.QueueDelayed:
		w.Gap = ms(delay)
		if own {
			w.Crawl = d.Crawl(f.id)
		} else {
			w.Rule = docindex.WaitAllDelayed
		}
	}
	return w
}

// SetHostOverride changes settings of a host.
func SetHostOverride(d *queuesched.Scheduler, s *docindex.Setting, to queuesched.Settings, now int64) error {
	if !d.SetHostOverride(s.Key, to, now) {
		return docindex.ErrTooMany
	}
	return nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
