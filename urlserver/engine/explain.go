package engine

import (
	"fmt"
	"net/netip"
	"time"

	"urlserver/hostslots"
	"urlserver/internal/robots"
)

// Explanation is what is known of a host and why nothing is sent to it now.
type Explanation struct {
	hostslots.HostView
	Now       time.Duration // when this was true
	Robots    robots.Entry  // of its origin that was asked first
	CrawlWait bool          // its robots.txt is being fetched
	Name      string        // in words: how its name fails to resolve, and until when that is borne; "": it does not
	Judged    string        // in words: that its documents wait for a verdict; "": they do not
	Target    string        // in words: the blocked host that its robots.txt redirects to; "": none
	Lacks     string        // which of its documents wait for a spider of theirs, in words; "": none
	Lease     string        // what its group's lease is for, which the daemon does not have; "": it has it, or there are none
	Bound     netip.Addr    // where the reservation has it while it waits to go on at another address; invalid: it does not
	Rule      string        // of [[rules]], for people; "": none is for it
	Unasked   string        // in words: what keeps the doc index from being asked for documents of it; "": nothing
	Pace      string        // in words: until when its group may not be asked, and by which rule; "": it may be
	Fetched   Fetched       // what came back of its documents
	Why       string        // in words: the reason, until when, by which rule
}

// Explain tells about a host by name; known is false where the slots do not know it.
func (e *Engine) Explain(name []byte) (x Explanation, known bool) {
	id := e.slots.FindHost(name)
	if id == 0 {
		x.Slot, x.Now = -1, e.now
		x.Rule = e.ruling.set.Name(e.ruling.set.Match(name, x.Addr))
		x.Unasked = e.unasked(&x, e.ruling.set.Rule(e.ruling.set.Match(name, x.Addr)).Block)
		return x, false
	}
	x = Explanation{HostView: e.slots.Host(id).View(), Now: e.now}
	figures := e.hosts.look(id, name)
	x.Fetched = figures.view()
	e.slots.Host(id).Origins(func(o uint32) { x.Robots = e.entry(o).Entry })
	x.Target, x.Judged = e.shutTarget(id), e.judged(id)
	x.CrawlWait = x.Queued > 0 && !x.Offers && !x.Suspended
	if x.Unleased != 0 {
		x.Lease = e.leaseHost(x.Unleased)
	}
	if b := e.binding(id); b.since > 0 {
		x.Bound = b.group
	}
	x.Name = e.nameFault(id)
	x.Lacks = e.lacks(id)
	x.Rule = e.ruling.set.Name(e.ruling.set.Match(name, x.Addr))
	x.Unasked, x.Pace = e.unasked(&x, x.Limits.Blocked), e.notBefore(&x)
	x.Why = e.why(&x)
	if n := len(x.Lacks); len(x.Why) < n || x.Why[:n] != x.Lacks {
		x.Why += "; " + x.Lacks
	}
	return x, true
}

func (e *Engine) why(x *Explanation) string {
	switch {
	case x.Blocked != 0:
		return "blocked by the operator until " + e.at(x.Blocked)
	case x.Limits.Blocked:
		return "blocked by " + x.Rule
	case x.Name != "":
		return x.Name
	case x.Queued == 0 && x.InFlight > 0:
		return fmt.Sprintf("all its documents are at spiders (%d)", x.InFlight)
	case x.Queued == 0:
		return "no document is held for it; the doc index has offered none that is new" + e.notBefore(x)
	case e.stopping:
		return "the daemon is stopping"
	case e.paused:
		return "sending is paused by the operator (POST /api/resume goes on)"
	case e.choked:
		return "outcomes cannot be delivered to the doc index and docindex.outcomes_max is reached: sending waits"
	case x.Bound.IsValid():
		return fmt.Sprintf("its address has changed: the reservation has it at %v, where another daemon may ask it; "+
			"it goes on at its new address when that has ended", x.Bound)
	case !x.Addr.IsValid():
		return "its address is being looked up"
	case x.AddressPending:
		return "its address is looked up again, since what was known of it has ended"
	case x.Moving:
		return "goes to another group, since the rules or its address have changed, when the requests to it that are open have ended"
	case x.Active >= x.Concurrent:
		return fmt.Sprintf("%d of %d requests allowed to %s are open (%s); waits for one to end%s",
			x.Active, x.Concurrent, x.group(), e.openRule(x), e.notBefore(x))
	case x.Incoming != 0:
		return fmt.Sprintf("its group %s waits for an open request to %s, which is to join it by %s", x.group(), e.slots.Host(x.Incoming).Name(), e.joinRule(x.Incoming))
	case x.Lacks != "" && !x.Offers:
		return x.Lacks + e.notBefore(x)
	case x.CrawlWait && x.Judged != "":
		return x.Judged
	case x.CrawlWait && x.Robots.Unreachable() && x.Robots.FreshUntil() > e.now && x.Target != "":
		return fmt.Sprintf("its robots.txt redirects to %s: that forbids everything until it is tried again at %s", x.Target, e.at(x.Robots.FreshUntil()))
	case x.CrawlWait && x.Robots.Unreachable() && x.Robots.FreshUntil() > e.now:
		return "its robots.txt could not be had, which forbids everything until it is tried again at " + e.at(x.Robots.FreshUntil())
	case x.CrawlWait:
		return "its robots.txt is fetched first" + e.notBefore(x)
	case x.InSlotQueue:
		return fmt.Sprintf("its group %s waits for a host slot; all %d are taken (Queue_Count)", x.group(), e.cfg.QueueCount) + e.notBefore(x)
	case x.Unleased != 0:
		return fmt.Sprintf("its group %s is not reserved: the reservation is asked again and again", x.group()) + e.notBefore(x)
	case x.Next > e.now:
		return "its group may not be asked yet" + e.notBefore(x)
	case e.roomy == 0 && e.someStuck():
		return "due now; a spider does not read its lines and gets no more until it does; no other one is connected that has room (spider.max_in_flight)"
	case e.roomy == 0 && e.someMute():
		return "due now; a spider has not answered yet and gets nothing more until it does; no other one is connected that has room (spider.max_in_flight)"
	case e.roomy == 0:
		return "due now; no spider is connected that has room (spider.max_in_flight)"
	case x.Others > 1:
		return fmt.Sprintf("due now; takes turns with %d other hosts on %s", x.Others-1, x.group())
	}
	return "due now; goes out with the next sending"
}

// nameFault says how a host's name fails to resolve; "": it does not, as far as is known.
func (e *Engine) nameFault(host uint32) string {
	f := e.names.failing[host]
	switch {
	case f == nil:
		return ""
	case f.down && !e.names.down:
		return fmt.Sprintf("its name failed to resolve: %v; it is looked up again now", f.err)
	case f.down:
		return fmt.Sprintf("its name fails to resolve since %s: %v; it is looked up again and again, and nothing ends for that", e.at(e.names.heard), f.err)
	case f.over:
		return fmt.Sprintf("its name has failed since %s, and was given up (resolver.give_up): %v; what comes of it ends as dns", e.at(f.first), f.err)
	}
	again := "it is being looked up again"
	if !f.out {
		again = "it is looked up again at " + e.at(f.next)
	}
	return fmt.Sprintf("its name fails to resolve since %s: %v; %s; if it still fails at %s its documents end as dns (resolver.give_up)",
		e.at(f.first), f.err, again, e.at(e.now+e.left(f)))
}

// joinRule names what has a host go to another group.
func (e *Engine) joinRule(host uint32) string {
	n := e.ruling.set.Match(e.slots.Host(host).Name(), e.slots.Host(host).Addr())
	if e.ruling.set.Rule(n).Group == "" {
		return "its address"
	}
	return e.ruling.set.Name(n)
}

// unasked says why the doc index is not asked for documents of a host at the next moment.
func (e *Engine) unasked(x *Explanation, barred bool) string {
	c := e.slots.Counts()
	switch {
	case barred:
		return "the doc index is asked to leave it out: it is blocked by " + x.Rule
	case x.Name != "":
		return "the doc index is asked to leave it out: " + x.Name
	case x.Rejected:
		return fmt.Sprintf("the doc index is asked to leave out hosts on %s: as much of them is held as may be (Queue_Len, vhosts.reject_over)", x.group())
	case e.stopping:
		return "the daemon is stopping"
	case e.choked:
		return "outcomes cannot be delivered to the doc index and docindex.outcomes_max is reached: nothing is asked for"
	case e.alone():
		return "no spider is connected, so host slots take nothing from those who have other ways to fetch it"
	case c.Leftover >= e.cfg.Leftover.Max:
		return fmt.Sprintf("as many documents wait for slots as may (leftover.max, %d)", e.cfg.Leftover.Max)
	case !e.hungry():
		return fmt.Sprintf("all %d host slots are taken (Queue_Count), or enough documents wait for them or for DNS; those are first", e.cfg.QueueCount)
	case e.asking, e.intake != nil:
		return "the doc index is being asked right now"
	case e.askAt > e.now:
		return fmt.Sprintf("the doc index had nothing new, and is asked again at %s (docindex.retry, docindex.max_retry)", e.at(e.askAt))
	}
	return ""
}

// group is what the host's group goes by.
func (x *Explanation) group() string {
	if x.Group != "" {
		return x.Group
	}
	return x.Addr.String()
}

// notBefore says from when on the group may be asked, and by which rule.
func (e *Engine) notBefore(x *Explanation) string {
	if x.Next <= e.now {
		return ""
	}
	return fmt.Sprintf("; not before %s: %s", e.at(x.Next), e.rule(x))
}

// rule names what sets the moment of the next request.
func (e *Engine) rule(x *Explanation) string {
	switch {
	case !x.Addr.IsValid():
		return "the address it had before was asked a moment ago"
	case x.NotBefore >= x.Next:
		return e.cause(x)
	case x.Backoff > 0 && x.Gap == x.Backoff:
		return fmt.Sprintf("backing off after status 429 or 503, gap %v", x.Gap)
	case x.Gap > x.Base && x.Gap == x.HostDelay:
		return fmt.Sprintf("Crawl-delay of its robots.txt, %v", x.Gap)
	case x.Gap > x.Base:
		return fmt.Sprintf("Crawl-delay of another host on %s, %v", x.group(), x.Gap)
	case x.Last == 0:
		return fmt.Sprintf("%s, one request in %v; every host counts as asked when the daemon started", e.paceRule(x), x.Gap)
	}
	return fmt.Sprintf("%s, one request in %v", e.paceRule(x), x.Gap)
}

func (e *Engine) cause(x *Explanation) string {
	switch x.Cause {
	case hostslots.RetryAfter:
		return "Retry-After, which came with status 429 or 503"
	case hostslots.LastFetch:
		return fmt.Sprintf("politeness.delay_factor, %v times as long as the last fetch took", e.cfg.Politeness.DelayFactor)
	}
	if x.Group != "" {
		return fmt.Sprintf("a host of %s had another group before, which was asked a moment ago", x.Group)
	}
	return fmt.Sprintf("a host on %v had another address before, which was asked a moment ago", x.Addr)
}

func (e *Engine) at(t time.Duration) string { return Dated(e.wall.Add(t - e.now)) }

// Dated names the first second at which what waits until t may go on.
func Dated(t time.Time) string {
	return t.Add(time.Second - 1).UTC().Format(time.RFC3339)
}

// Block holds back everything to a host for a while; 0 or less lets it go on.
func (e *Engine) Block(name []byte, d time.Duration) {
	host := e.slots.EnsureHost(name)
	e.slots.Host(host).Block(e.now, e.now+d)
	e.turnAway(host)
}

// What a call of SlotViews looks at: some hundred microseconds' worth.
const (
	slotsStep = 1 << 16 // slots
	viewsStep = 64      // slots in use that are described
)

// SlotViews is a walk over slots in use.
type SlotViews struct {
	Offset int // slots in use to be left out before the first
	Limit  int // that are wanted
	Hosts  int // at most so many host names of each
	Found  []hostslots.SlotView
	next   uint32
}

// SlotViews goes on with a walk. more: it is not at its end. A slot that comes into use, or out of it, meanwhile may be in it or not.
func (e *Engine) SlotViews(w *SlotViews) (more bool) {
	end, views := min(w.next+slotsStep, uint32(e.cfg.QueueCount)), 0
	for ; w.next < end && views < viewsStep && len(w.Found) < w.Limit; w.next++ {
		if !e.slots.SlotUsed(w.next) {
			continue
		}
		if w.Offset > 0 {
			w.Offset--
			continue
		}
		v, _ := e.slots.Slot(w.next, w.Hosts)
		w.Found = append(w.Found, v)
		views++
	}
	return w.next < uint32(e.cfg.QueueCount) && len(w.Found) < w.Limit
}

// SlotView returns one slot, with at most the given number of host names; used is false where
// it is empty or there is none of this number.
func (e *Engine) SlotView(n uint32, hosts int) (v hostslots.SlotView, used bool) {
	if int(n) >= e.cfg.QueueCount {
		return hostslots.SlotView{}, false
	}
	return e.slots.Slot(n, hosts)
}

// Glances fills dst with the slots from the given one on, and returns how many there were.
func (e *Engine) Glances(from int, dst []hostslots.SlotSummary) int {
	return e.slots.Summaries(e.now, from, dst)
}

// Blocked returns the hosts that the operator has blocked, at most so many, and the number of all.
func (e *Engine) Blocked(most int) (hosts []hostslots.BlockedHost, all int) {
	return e.slots.Blocked(most)
}
