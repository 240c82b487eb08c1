package embedded

import (
	"cmp"
	"fmt"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// MaxLook is how many queues of a host are looked at: some hundred microseconds.
const MaxLook = 1000

// Look looks at a host whose queues are kept in doors; active is whether calls are served.
func Look(d *queuesched.Doors, host []byte, active bool, now int64) (l docindex.HostStatus) {
	best := [2]soonest{{at: queuesched.Never}, {at: queuesched.Never}}
	d.QueuesOf(host, func(id uint32) bool {
		if l.Queues == MaxLook {
			l.Truncated = true
			return false
		}
		n := d.QueueTotal(id)
		l.Scheduled, l.InTransit, l.Completed = l.Scheduled+n.URLs[docindex.Scheduled], l.InTransit+n.URLs[docindex.InTransit], l.Completed+n.URLs[docindex.Completed]
		l.Queues, l.Active = l.Queues+n.Queues, l.Active+n.Active
		for door := range best {
			best[door].meet(d, id, queuesched.Door(door), now)
		}
		return true
	})
	out := d.HostOut(host)
	l.Transit = docindex.TransitCounts{Slots: uint64(out[queuesched.Slots]), Frontier: uint64(out[queuesched.Calls]), Remote: uint64(out[queuesched.Lent])}
	order := d.OrderOf(host)
	if order.Blocked != nil && *order.Blocked > now {
		l.Blocked = time.UnixMilli(*order.Blocked).UTC()
	}
	if order.Delay != nil {
		l.Delay = time.Duration(*order.Delay) * time.Millisecond
	}
	l.AtSlots, l.AtFrontier = best[queuesched.Slots].turn(d, &l), best[queuesched.Calls].turn(d, &l)
	if !active {
		l.AtFrontier = docindex.Availability{Why: "clients are given nothing at all (SetActive)"}
	}
	return l
}

// soonest is the queue of a host that may be served first at a door.
type soonest struct {
	id   uint32 // 0: there is none
	at   int64
	rule queuesched.Rule
}

// meet prefers what is sooner, and among what waits for events that which is more than empty.
func (f *soonest) meet(d *queuesched.Doors, id uint32, door queuesched.Door, now int64) {
	at, rule := d.Why(id, door, now)
	if f.id == 0 || cmp.Or(cmp.Compare(at, f.at), cmp.Compare(f.rank(), rank(rule))) < 0 {
		*f = soonest{id, at, rule}
	}
}

func (f *soonest) rank() int { return rank(f.rule) }

// rank is low for what tells little.
func rank(r queuesched.Rule) int {
	if r == queuesched.NothingDue {
		return 0
	}
	return 1
}

func (f *soonest) turn(d *queuesched.Doors, l *docindex.HostStatus) (t docindex.Availability) {
	if f.id == 0 || f.rule == queuesched.Open {
		t.Open = f.id != 0
		return t
	}
	if f.at != queuesched.Never {
		t.NotBefore = time.UnixMilli(f.at).UTC()
	}
	t.ByRule = f.rule == queuesched.HostBarred || f.rule == queuesched.HostPaced
	t.Why = f.words(d, l)
	return t
}

func (f *soonest) words(d *queuesched.Doors, l *docindex.HostStatus) string {
	queue := ""
	if crawl := d.Crawl(f.id); crawl != "" {
		queue = fmt.Sprintf(" in crawl %.100q", crawl)
	}
	delay, own := d.Pace(f.id)
	switch f.rule {
	case queuesched.NothingDue:
		return "nothing of it is scheduled"
	case queuesched.AtACall:
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
	case queuesched.OutAtCalls:
		return fmt.Sprintf("%d of its documents are with clients of the URL Frontier, until they report them or their leases end", l.Transit.Frontier)
	case queuesched.OutAtSlots:
		return fmt.Sprintf("%d of its documents are at host slots, for line spiders", l.Transit.Slots)
	case queuesched.OutLent:
		return fmt.Sprintf("%d of its documents are with daemons that took them over HTTP, until they report them or their leases end", l.Transit.Remote)
	case queuesched.HostDelayOut:
		return fmt.Sprintf("one at a time, by the operator's delay of %v", l.Delay)
	case queuesched.HostDelayed:
		return fmt.Sprintf("the operator's delay of %v", l.Delay)
	case queuesched.HostPaused:
		return "the slots asked it lately: its pace, its robots.txt or its Retry-After says so"
	case queuesched.HostPaced:
		return fmt.Sprintf("a rule, one giving in %v", ms(d.Wants(f.id)))
	case queuesched.HostGap:
		return fmt.Sprintf("it wants %v between two requests (Crawl-delay or backing off)", ms(d.Wants(f.id)))
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

// SetOnHost sets something on a host whose queues are kept in doors.
func SetOnHost(d *queuesched.Doors, s *docindex.Setting, to queuesched.Settings, now int64) error {
	if !d.SetHost(s.Key, to, now) {
		return docindex.ErrTooMany
	}
	return nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
