package embedded

import (
	"cmp"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// MaxHostQueues is how many queues of a host are looked at: some hundred microseconds.
const MaxHostQueues = 1000

// HostStatus looks at a host whose queues are kept in doors; active is whether calls are served.
func HostStatus(d *queuesched.Scheduler, host []byte, active bool, now int64) (l docindex.HostStatus) {
	best := [2]earliest{{at: queuesched.Never}, {at: queuesched.Never}}
	d.QueuesOf(host, func(id uint32) bool {
		if l.Queues == MaxHostQueues {
			l.Truncated = true
			return false
		}
		n := d.QueueTotal(id)
		l.Scheduled, l.InTransit, l.Completed = l.Scheduled+n.URLs[docindex.Scheduled], l.InTransit+n.URLs[docindex.InTransit], l.Completed+n.URLs[docindex.Completed]
		l.Queues, l.Active = l.Queues+n.Queues, l.Active+n.Active
		for consumer := range best {
			best[consumer].consider(d, id, queuesched.Consumer(consumer), now)
		}
		return true
	})
	out := d.HostOut(host)
	l.Transit = docindex.TransitCounts{Slots: uint64(out[queuesched.SlotConsumer]), Frontier: uint64(out[queuesched.FrontierConsumer]), Remote: uint64(out[queuesched.RemoteConsumer])}
	order := d.HostOverride(host)
	if order.Blocked != nil && *order.Blocked > now {
		l.Blocked = time.UnixMilli(*order.Blocked).UTC()
	}
	if order.Delay != nil {
		l.Delay = time.Duration(*order.Delay) * time.Millisecond
	}
	l.AtSlots, l.AtFrontier = best[queuesched.SlotConsumer].availability(d, &l), best[queuesched.FrontierConsumer].availability(d, &l)
	if !active {
		l.AtFrontier = docindex.Availability{Why: "clients are given nothing at all (SetActive)"}
	}
	return l
}

// earliest is the queue of a host that may be served first at a consumer.
type earliest struct {
	id     uint32 // 0: there is none
	at     int64
	reason queuesched.Reason
}

// consider prefers what is sooner, and among what waits for events that which is more than empty.
func (f *earliest) consider(d *queuesched.Scheduler, id uint32, consumer queuesched.Consumer, now int64) {
	at, rule := d.NotBefore(id, consumer, now)
	if f.id == 0 || cmp.Or(cmp.Compare(at, f.at), cmp.Compare(f.rank(), rank(rule))) < 0 {
		*f = earliest{id, at, rule}
	}
}

func (f *earliest) rank() int { return rank(f.reason) }

// rank is low for what tells little.
func rank(r queuesched.Reason) int {
	if r == queuesched.NothingDue {
		return 0
	}
	return 1
}

func (f *earliest) availability(d *queuesched.Scheduler, l *docindex.HostStatus) (t docindex.Availability) {
	if f.id == 0 || f.reason == queuesched.Open {
		t.Open = f.id != 0
		return t
	}
	if f.at != queuesched.Never {
		t.NotBefore = time.UnixMilli(f.at).UTC()
	}
	t.ByRule = f.reason == queuesched.HostBarred || f.reason == queuesched.HostPaced
	t.Why = f.words(d, l)
	return t
}

func (f *earliest) words(d *queuesched.Scheduler, l *docindex.HostStatus) string {
	queue := ""
	if crawl := d.Crawl(f.id); crawl != "" {
		queue = fmt.Sprintf(" in crawl %.100q", crawl)
	}
	delay, own := d.QueueDelay(f.id)
	switch f.reason {
	case queuesched.NothingDue:
		return "nothing of it is scheduled"
	case queuesched.BeingServed:
		return "a client of the URL Frontier is being given some of it"
	case queuesched.LimitReached:
		limit := uint32(0)
		if p := d.SettingsOf(f.id).Limit; p != nil {
			limit = *p
		}
		return fmt.Sprintf("the limit of its queue%s, %d completed URLs, is reached (SetCrawlLimit)", queue, limit)
	case queuesched.HostBarred:
		return "blocked by a rule"
	case queuesched.HostBlocked:
		return "blocked by the operator"
	case queuesched.QueueBlocked:
		return fmt.Sprintf("its queue%s is blocked (BlockQueueUntil)", queue)
	case queuesched.OutAtFrontier:
		return fmt.Sprintf("%d of its documents are with clients of the URL Frontier, until they report them or their leases end", l.Transit.Frontier)
	case queuesched.OutAtSlots:
		return fmt.Sprintf("%d of its documents are at host slots, for line spiders", l.Transit.Slots)
	case queuesched.OutRemote:
		return fmt.Sprintf("%d of its documents are with daemons that took them over HTTP, until they report them or their leases end", l.Transit.Remote)
	case queuesched.HostDelayOut:
		return fmt.Sprintf("one at a time, by the operator's delay of %v", l.Delay)
	case queuesched.HostDelayed:
		return fmt.Sprintf("the operator's delay of %v", l.Delay)
	case queuesched.HostPaused:
		return "the slots asked it lately: its pace, its robots.txt or its Retry-After says so"
	case queuesched.HostPaced:
		return fmt.Sprintf("a rule, one giving in %v", ms(d.HostGap(f.id)))
	case queuesched.HostGapKept:
		return fmt.Sprintf("it wants %v between two requests (Crawl-delay or backing off)", ms(d.HostGap(f.id)))
	case queuesched.SlotGap:
		return fmt.Sprintf("others asked it lately, and the slots keep %v between two requests (Req_Host_Per_Sec)", ms(d.SlotGap()))
	case queuesched.QueueDelayOut:
		return fmt.Sprintf("one at a time, by the delay of its queue%s, %v (SetDelay)", queue, ms(delay))
	case queuesched.QueueDelayed:
		if !own {
			return fmt.Sprintf("the delay of all queues, %v (SetDelay without a key, or the usual one)", ms(delay))
		}
		return fmt.Sprintf("the delay of its queue%s, %v (SetDelay)", queue, ms(delay))
	case queuesched.PassedOver:
		return "nothing of its queue" + queue + " could be given a moment ago: all were on hosts that may not be asked yet"
	}
	return "the first of its documents is scheduled for then"
}

// SetHostOverride sets something on a host whose queues are kept in doors.
func SetHostOverride(d *queuesched.Scheduler, s *docindex.Setting, to queuesched.Settings, now int64) error {
	if !d.SetHostOverride(s.Key, to, now) {
		return docindex.ErrTooMany
	}
	return nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
