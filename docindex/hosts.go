package docindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/docindex/internal/queuesched"
)

// HostLook is what a store knows of a host, by the queues that have its name for a key: URLs on it in queues of other names
// are told of only while they are out.
type HostLook struct {
	Counts
	Out     OutAt
	Blocked time.Time     // by an order, until then; zero: it is not
	Delay   time.Duration // by an order; 0: there is none
	AtSlots Turn          // of the queue that may be served first at the slots
	AtCalls Turn          // of that which may be served first by calls
	Partly  bool          // it has more queues than were looked at
}

// HostRule is what a rule says of a host.
type HostRule = queuesched.HostRule

// OutAt counts URLs on a host in transit: at slots, given to calls, lent to other daemons.
type OutAt struct{ Slots, Calls, Lent uint64 }

// Turn is when something may be given out.
type Turn struct {
	Open  bool      // now
	Not   time.Time // before; zero: not before something else happens, or it is open
	Why   string    // in words, by which rule; "": it is open
	Ruled bool      // by a rule that Obey was told of; Why has it as "a rule"
}

// MaxLook is how many queues of a host are looked at: some hundred microseconds.
const MaxLook = 1000

// Look looks at a host whose queues are kept in doors; active is whether calls are served.
func Look(d *queuesched.Doors, host []byte, active bool, now int64) (l HostLook) {
	best := [2]soonest{{at: queuesched.Never}, {at: queuesched.Never}}
	d.QueuesOf(host, func(id uint32) bool {
		if l.Queues == MaxLook {
			l.Partly = true
			return false
		}
		n := d.QueueTotal(id)
		l.Scheduled, l.InTransit, l.Completed = l.Scheduled+n.URLs[Scheduled], l.InTransit+n.URLs[InTransit], l.Completed+n.URLs[Completed]
		l.Queues, l.Active = l.Queues+n.Queues, l.Active+n.Active
		for door := range best {
			best[door].meet(d, id, queuesched.Door(door), now)
		}
		return true
	})
	out := d.HostOut(host)
	l.Out = OutAt{Slots: uint64(out[queuesched.Slots]), Calls: uint64(out[queuesched.Calls]), Lent: uint64(out[queuesched.Lent])}
	order := d.OrderOf(host)
	if order.Blocked != nil && *order.Blocked > now {
		l.Blocked = time.UnixMilli(*order.Blocked).UTC()
	}
	if order.Delay != nil {
		l.Delay = time.Duration(*order.Delay) * time.Millisecond
	}
	l.AtSlots, l.AtCalls = best[queuesched.Slots].turn(d, &l), best[queuesched.Calls].turn(d, &l)
	if !active {
		l.AtCalls = Turn{Why: "clients are given nothing at all (SetActive)"}
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

func (f *soonest) turn(d *queuesched.Doors, l *HostLook) (t Turn) {
	if f.id == 0 || f.rule == queuesched.Open {
		t.Open = f.id != 0
		return t
	}
	if f.at != queuesched.Never {
		t.Not = time.UnixMilli(f.at).UTC()
	}
	t.Ruled = f.rule == queuesched.HostBarred || f.rule == queuesched.HostPaced
	t.Why = f.words(d, l)
	return t
}

func (f *soonest) words(d *queuesched.Doors, l *HostLook) string {
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
		return fmt.Sprintf("%d of its documents are with clients of the URL Frontier, until they report them or their leases end", l.Out.Calls)
	case queuesched.OutAtSlots:
		return fmt.Sprintf("%d of its documents are at host slots, for line spiders", l.Out.Slots)
	case queuesched.OutLent:
		return fmt.Sprintf("%d of its documents are with daemons that took them over HTTP, until they report them or their leases end", l.Out.Lent)
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
func SetOnHost(d *queuesched.Doors, s *Setting, to queuesched.Settings, now int64) error {
	if !d.SetHost(s.Key, to, now) {
		return ErrTooMany
	}
	return nil
}

// Check tells whether there is such a setting for a host; it has nothing against others.
func (s *Setting) Check() error {
	if s.Host && (len(s.Key) == 0 || s.Which != SetDelay && s.Which != SetBlock) {
		return ErrNoHost
	}
	return nil
}

// ErrNoHost is returned by [Caller.Set] where what is to be set on a host cannot be.
var ErrNoHost = errors.New("a delay or a block can be set on a host that is named, nothing else")

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// LookAtHost is [Caller.LookAtHost].
func (m *Memory) LookAtHost(ctx context.Context, host []byte) (HostLook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.catchUpLocked(now)
	return Look(m.doors, host, !m.passive, now), ctx.Err()
}
