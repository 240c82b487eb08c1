package engine

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/internal/robots"
	"urlserver/urlserver/explain"
)

// Explanation is what is known of a host and why nothing is sent to it now.
type Explanation struct {
	hostslots.HostView
	Paused     bool               // the operator has paused sending
	Robots     robots.Entry       // of its origin that was asked first
	Sitemaps   []string           // that the robots.txt of its origins name
	CrawlWait  bool               // its robots.txt is being fetched
	Name       explain.Reason     // how its name fails to resolve, and when the daemon gives it up
	Judged     explain.Reason     // its documents wait for a verdict of robots.txt
	Target     explain.Reason     // the blocked host that its robots.txt redirects to
	Lacks      explain.Reason     // which of its documents wait for a spider of their pool
	Lease      string             // the lease host of its group if the daemon wants and lacks the lease; ""
	Bound      netip.Addr         // where the reservation has it while it waits to move to another address; or invalid
	AwaitsEnd  bool               // it waits until its binding ends; see Engine.awaitsEnd
	HeldBack   time.Time          // until then nothing is sent to it, as an alias has changed; see Engine.holdBack
	Rule       string             // the name of the rule for it, or for its address, of [[rules]]; ""
	Limits     configs.HostLimits // by the rules
	Unasked    explain.Reason     // why the doc index is not asked for documents of it
	Pace       explain.Reason     // until when it may not be requested, and by which rule
	SiteWhy    []explain.Reason   // what holds its site back, until when, and by which rule
	AddressWhy []explain.Reason   // the same for its address or shared network
	Fetched    Fetched            // what came back of its documents
	Reasons    []explain.Reason   // why nothing is sent to it now; the first is the main one
	Why        string             // the text of Reasons
}

// Is reports whether the main reason is of this kind.
func (x *Explanation) Is(kind explain.Kind) bool {
	return len(x.Reasons) > 0 && x.Reasons[0].Kind == kind
}

// Explain tells about a host by name; known is false where the slots do not know it.
func (e *Engine) Explain(name []byte) (x Explanation, known bool) {
	id := e.slots.FindHost(name)
	if id == 0 {
		x.Slot, x.Paused = -1, e.sending.paused
		e.applyTo(&x, name)
		x.Unasked = e.unasked(&x, x.Limits.Block)
		return x, false
	}
	x = Explanation{HostView: e.slots.Host(id).View(), Paused: e.sending.paused}
	counters := e.outcomes.byHost.look(id, e.slots.Host(id).Hash())
	x.Fetched = counters.view()
	e.slots.Host(id).Origins(func(o uint32) { x.Robots = e.robots.entry(o).Entry })
	x.Sitemaps = e.sitemaps(id)
	x.Target, x.Judged = e.blockedTarget(id), e.verdictWait(id)
	x.CrawlWait = x.Queued > 0 && !x.Offers && !x.Suspended
	if x.Unleased != 0 {
		x.Lease = e.leaseHost(x.Unleased)
	}
	b := e.binding(id)
	if b.held && b.at == 0 && e.leases.bindings.questions.Has(id) {
		x.HeldBack = e.date(e.leases.bindings.questions.Due(id))
	}
	if x.AwaitsEnd = b.waits; b.pending && b.moved() && !e.usable(b) {
		x.Bound = b.group
	}
	x.Name = e.nameFault(id)
	x.Lacks = e.lacksSpider(id)
	e.applyTo(&x, name)
	x.SiteWhy, x.AddressWhy = e.siteWhy(&x), e.addressWhy(&x)
	x.Unasked, x.Pace = e.unasked(&x, x.HostView.Limits.Blocked), e.notBefore(&x)
	x.Reasons = e.reasons(&x)
	if x.Address.Level == hostslots.NetworkLevel && e.opt.Lease > 0 && x.Queued > 0 {
		held, of := e.leases.slices.share(x.Address.Name)
		x.Reasons = append(x.Reasons, because(explain.NetworkShare, held, of, x.Address.Name))
	}
	if x.Lacks.Kind != explain.None && !x.Is(x.Lacks.Kind) {
		x.Reasons = append(x.Reasons, x.Lacks)
	}
	x.Why = explain.Text(x.Reasons)
	return x, true
}

// reasons returns why nothing is sent to the host, and until when its group waits if that is a part
// of it.
func (e *Engine) reasons(x *Explanation) []explain.Reason {
	r := e.blockedOrIdle(x)
	if r.Kind == explain.None {
		r = e.groupWaits(x)
	}
	if r.Kind == explain.None {
		r = e.spidersWait(x)
	}
	switch {
	case r.Kind == explain.NothingHeld, r.Kind == explain.AllOpen, r.Kind == explain.RobotsPending,
		r.Kind == explain.NoSlot, r.Kind == explain.NotLeased, r.Kind == explain.GapNotOver,
		r.Kind != explain.None && r.Kind == x.Lacks.Kind:
		return []explain.Reason{r, e.notBefore(x)}
	}
	return []explain.Reason{r}
}

// blockedOrIdle returns what keeps the host, or the daemon as a whole, from sending.
func (e *Engine) blockedOrIdle(x *Explanation) explain.Reason {
	switch {
	case x.Blocked != 0:
		return explain.Reason{Kind: explain.BlockedByOperator, Until: e.date(x.Blocked)}
	case x.HostView.Limits.Blocked:
		return explain.Reason{Kind: explain.BlockedByRule, By: x.Rule}
	case x.Name.Kind != explain.None:
		return x.Name
	case x.Queued == 0 && x.InFlight > 0:
		return because(explain.AllAtSpiders, x.InFlight)
	case x.Queued == 0:
		return because(explain.NothingHeld)
	case e.sending.stopping:
		return because(explain.Stopping)
	case e.sending.paused:
		return because(explain.Paused)
	case e.sending.backpressure:
		return because(explain.OutcomesFull)
	case x.Bound.IsValid():
		return because(explain.AddressBound, x.Bound)
	case x.AwaitsEnd:
		return because(explain.BindingAwaited)
	case !x.HeldBack.IsZero():
		return explain.Reason{Kind: explain.AliasChanged, Until: x.HeldBack}
	case !x.Addr.IsValid():
		return because(explain.AddressUnknown)
	case x.AddressPending:
		return because(explain.AddressEnded)
	case x.Moving:
		return because(explain.Regrouping)
	}
	return explain.Reason{}
}

// groupWaits returns what the host's group, its robots.txt or its documents wait for.
func (e *Engine) groupWaits(x *Explanation) explain.Reason {
	unreachable := x.Robots.Unreachable() && x.Robots.FreshUntil() > e.now
	switch {
	case x.Site.Open >= x.Site.MostOpen:
		return e.allOpen(x, &x.Site)
	case x.Address.Open >= x.Address.MostOpen:
		return e.allOpen(x, &x.Address)
	case x.Incoming != 0:
		r := because(explain.JoinPending, x.group(), string(e.slots.Host(x.Incoming).Name()))
		r.By = e.joinRule(x.Incoming)
		return r
	case x.Lacks.Kind != explain.None && !x.Offers:
		return x.Lacks
	case x.CrawlWait && x.Judged.Kind != explain.None:
		return x.Judged
	case x.CrawlWait && unreachable && x.Target.Kind != explain.None:
		return explain.Reason{
			Kind: explain.RobotsTargetBlocked, By: x.Target.String(), Until: e.date(x.Robots.FreshUntil()),
		}
	case x.CrawlWait && unreachable:
		return explain.Reason{Kind: explain.RobotsUnreachable, Until: e.date(x.Robots.FreshUntil())}
	case x.CrawlWait:
		return because(explain.RobotsPending)
	case x.InSlotQueue:
		return because(explain.NoSlot, x.group(), e.cfg.QueueCount)
	case x.Unleased != 0:
		return because(explain.NotLeased, e.slots.Group(x.Unleased).Name())
	case x.Next > e.now:
		return because(explain.GapNotOver)
	case x.InLine > 0:
		return inLine(x)
	}
	return explain.Reason{}
}

// spidersWait returns what a host that is due waits for.
func (e *Engine) spidersWait(x *Explanation) explain.Reason {
	switch {
	case e.spiders.withRoom == 0 && e.spiders.anyStuck(e.now):
		return because(explain.SpiderStuck)
	case e.spiders.withRoom == 0 && e.anyUnanswered():
		return because(explain.SpiderMute)
	case e.spiders.withRoom == 0:
		return because(explain.NoRoom)
	case x.Others > 1:
		return because(explain.TakesTurns, x.Others-1, x.group())
	}
	return because(explain.DueNow)
}

func because(kind explain.Kind, args ...any) explain.Reason {
	return explain.Reason{Kind: kind, Args: args}
}

// nameFault returns how a host's name fails to resolve, as far as is known.
func (e *Engine) nameFault(host uint32) explain.Reason {
	f := e.dns.failing[host]
	if f == nil {
		return explain.Reason{}
	}
	r := explain.Reason{By: fmt.Sprint(f.err), Args: []any{e.date(f.first)}}
	switch {
	case f.down && !e.dns.down:
		r.Kind = explain.NameUnasked
	case f.down:
		r.Kind, r.Args[0] = explain.NameServersDown, e.date(e.dns.answeredAt)
	case f.givenUp:
		r.Kind = explain.NameGivenUp
	case f.lookingUp:
		r.Kind, r.Until = explain.NameFailsAsking, e.date(e.now+e.timeLeft(f))
	default:
		r.Kind, r.Until = explain.NameFails, e.date(e.now+e.timeLeft(f))
		r.Args = append(r.Args, e.date(f.next))
	}
	return r
}

// joinRule names the rule by which a host joins another group.
func (e *Engine) joinRule(host uint32) string {
	l := e.limitsFor(host, e.slots.Host(host).Addr())
	if l.Group == "" {
		return explain.ItsAddress
	}
	return e.rules.set.Name(l.SiteRule)
}

// unasked returns why the doc index is not asked for documents of a host at the next moment.
func (e *Engine) unasked(x *Explanation, barred bool) explain.Reason {
	c := e.slots.Counts()
	switch {
	case barred:
		return explain.Reason{Kind: explain.LeftOutBlocked, By: x.Rule}
	case x.Name.Kind != explain.None:
		return explain.Reason{Kind: explain.LeftOutName, By: x.Name.String()}
	case x.Rejected:
		return because(explain.LeftOutFull, x.group())
	case e.sending.stopping:
		return because(explain.Stopping)
	case e.sending.backpressure:
		return because(explain.UnaskedOutcomesFull)
	case e.noSpiders():
		return because(explain.UnaskedNoSpider)
	case c.Leftover >= e.cfg.Leftover.Max:
		return because(explain.UnaskedLeftoverFull, e.cfg.Leftover.Max)
	case c.Payloads >= maxPayloads:
		return because(explain.UnaskedPayloads, maxPayloads>>20)
	case !e.needsCandidates():
		return because(explain.UnaskedSlotsFull, e.cfg.QueueCount)
	case e.intake.asking, e.intake.batch != nil:
		return because(explain.UnaskedAsking)
	case e.intake.askAt > e.now:
		return explain.Reason{Kind: explain.UnaskedBackoff, Until: e.date(e.intake.askAt)}
	}
	return explain.Reason{}
}

// group returns the name or the address of the host's group, for people.
func (x *Explanation) group() string {
	switch {
	case x.Group != "":
		return x.Group
	case x.Address.Level == hostslots.NetworkLevel:
		return x.Site.Name
	}
	return x.Addr.String()
}

// notBefore returns from when on the host may be requested, and by which rule; the zero Reason if
// it may be requested now.
func (e *Engine) notBefore(x *Explanation) explain.Reason {
	if x.Address.Next > x.Site.Next {
		return e.addressNotBefore(x)
	}
	return e.siteNotBefore(x)
}

// siteWhy returns what holds the site back.
func (e *Engine) siteWhy(x *Explanation) (reasons []explain.Reason) {
	if x.Site.Open >= x.Site.MostOpen {
		reasons = append(reasons, e.allOpen(x, &x.Site))
	}
	return append(reasons, e.siteNotBefore(x))
}

// addressWhy returns what holds the address or the shared network back.
func (e *Engine) addressWhy(x *Explanation) (reasons []explain.Reason) {
	switch l := &x.Address; {
	case l.Level == hostslots.NoLevel:
		return nil
	case l.Open >= l.MostOpen:
		reasons = append(reasons, e.allOpen(x, l))
	case l.Next <= e.now && x.InLine > 0:
		reasons = append(reasons, inLine(x))
	}
	return append(reasons, e.addressNotBefore(x))
}

// inLine returns that the site stands in line for its address or shared network.
func inLine(x *Explanation) explain.Reason {
	return because(explain.InLine, explain.LevelName(x.Address.Level), x.Address.Name, x.InLine)
}

// heldBy returns the level that holds a host back, and why that level does.
func (e *Engine) heldBy(x *Explanation) (hostslots.Level, []explain.Reason) {
	switch level := x.HeldBy(e.now); level {
	case hostslots.NoLevel:
		return level, nil
	case hostslots.SiteLevel:
		return level, e.siteWhy(x)
	default:
		return level, e.addressWhy(x)
	}
}

// siteNotBefore returns until when the site may not be requested, and by which rule.
func (e *Engine) siteNotBefore(x *Explanation) explain.Reason {
	l := &x.Site
	r := because(explain.PaceGap, l.Gap)
	switch {
	case l.Next <= e.now:
		return explain.Reason{}
	case l.NotBefore >= l.Next && l.Cause == hostslots.RetryAfter:
		r = because(explain.PaceRetryAfter)
	case l.NotBefore >= l.Next && l.Cause == hostslots.BeforeStart:
		r = because(explain.PaceBeforeStart)
	case l.NotBefore >= l.Next:
		r = because(explain.PaceLastFetch, e.cfg.Politeness.DelayFactor)
	case l.Backoff > 0 && l.Gap == l.Backoff:
		r = because(explain.PaceBackoff, l.Gap)
	case l.Gap > l.Base && l.Gap == x.HostDelay:
		r = because(explain.PaceCrawlDelay, l.Gap)
	case l.Gap > l.Base && l.Gap == l.CrawlDelay:
		r = because(explain.PaceCrawlDelayOther, l.Gap, l.Name)
	default:
		r.By = e.levelRule(x, l, l.Gap == gap(x.Limits.Site.PerSec), l.Gap == gap(e.cfg.SitePace().PerSec), "per_sec")
		if l.Last == 0 {
			r.Kind = explain.PaceGapSinceStart
		}
	}
	return explain.Reason{Kind: explain.NotBefore, Until: e.date(l.Next), By: r.String()}
}

// addressNotBefore returns until when the address or the shared network may not be requested, and
// by which rule, or which sites made it back off.
func (e *Engine) addressNotBefore(x *Explanation) explain.Reason {
	l := &x.Address
	var r explain.Reason
	switch {
	case l.Next <= e.now:
		return explain.Reason{}
	case l.Backoff > 0 && l.Gap == l.Backoff:
		r = because(explain.PaceAddressBackoff, l.Gap, l.Name)
		r.By = explain.List(l.Failing)
	case l.Level == hostslots.NetworkLevel:
		r = because(explain.PaceNetworkGap, l.Gap, l.Name)
	case l.NotBefore >= l.Next && l.Cause == hostslots.LeftShared:
		r = because(explain.PaceLeftShared, l.Name)
	default:
		r = because(explain.PaceAddressGap, l.Gap, l.Name)
		r.By = e.levelRule(x, l, l.Gap == gap(x.Limits.Address.PerSec), l.Gap == gap(e.cfg.ReqHostPerSec), "per_sec")
	}
	return explain.Reason{Kind: explain.NotBefore, Until: e.date(l.Next), By: r.String()}
}

// allOpen returns that as many requests to a site or an address are open as may be, and by which
// rule.
func (e *Engine) allOpen(x *Explanation, l *hostslots.LevelView) explain.Reason {
	own, usual := x.Limits.Site.Concurrent, e.cfg.SitePace().Concurrent
	if l == &x.Address {
		own, usual = x.Limits.Address.Concurrent, e.cfg.ReqHostConcurrent
	}
	r := because(explain.AllOpen, l.Open, l.MostOpen, explain.LevelName(l.Level), l.Name)
	r.By = e.levelRule(x, l, l.MostOpen == own, l.MostOpen == usual, "concurrent")
	return r
}

// levelRule names what sets a limit of a site or an address: the rule of its own, the setting for
// all, or rules of other hosts there.
func (e *Engine) levelRule(x *Explanation, l *hostslots.LevelView, own, usual bool, limit string) string {
	site := l.Level == hostslots.SiteLevel
	switch {
	case l.Level == hostslots.NetworkLevel:
		return explain.SharedNetwork
	case own && site:
		return e.rules.set.Name(x.Limits.SiteRule)
	case own:
		return e.rules.set.Name(x.Limits.AddressRule)
	case !usual && site:
		return explain.OtherRule(x.group())
	case !usual:
		return explain.AllRules(l.Name)
	}
	switch p := &e.cfg.Politeness; {
	case limit == "per_sec" && site && p.SitePerSec > 0:
		return "politeness.site_per_sec"
	case limit == "per_sec":
		return "Req_Host_Per_Sec"
	case site && p.SiteConcurrent > 0:
		return "politeness.site_concurrent"
	}
	return "Req_Host_Concurrent"
}

// applyTo notes the rules for a host.
func (e *Engine) applyTo(x *Explanation, name []byte) {
	x.Limits = e.rules.set.Limits(name, x.Addr)
	x.Rule = e.rules.set.Name(cmp.Or(x.Limits.SiteRule, x.Limits.AddressRule))
}

// date converts a moment of the engine's clock.
func (e *Engine) date(t time.Duration) time.Time { return e.wall.Add(t - e.now) }

// Block stops all requests to a host for the time d. If d is 0 or less, it ends a block.
func (e *Engine) Block(name []byte, d time.Duration) {
	host := e.slots.EnsureHost(name)
	e.slots.Host(host).Block(e.now, e.now+d)
	e.endBlockedFetches(host)
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

// SlotViews does the next step of a walk. more reports whether the walk has steps left. A slot that
// comes into use or out of use during the walk may be in the list or not.
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
		v, _ := e.slots.Slot(e.now, w.next, w.Hosts)
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
	return e.slots.Slot(e.now, n, hosts)
}

// SlotSummaries fills dst with the slots from the given one on, and returns how many there were.
func (e *Engine) SlotSummaries(from int, dst []hostslots.SlotSummary) int {
	return e.slots.Summaries(e.now, from, dst)
}

// Blocked returns the hosts that the operator has blocked, at most so many, and the number of all.
func (e *Engine) Blocked(most int) (hosts []hostslots.BlockedHost, all int) {
	return e.slots.Blocked(most)
}
