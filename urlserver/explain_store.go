package urlserver

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver/engine"
	"urlserver/urlserver/explain"
)

// Explain returns why nothing is sent to a host now, and what is known of it. ok is false if
// neither the slots nor the embedded index know it. Date converts its times to dates.
func (d *Daemon) Explain(ctx context.Context, host string) (x engine.Explanation, ok bool, err error) {
	type answer struct {
		x     engine.Explanation
		known bool
	}
	a, err := answerOf(ctx, d, func(e *engine.Engine) (a answer) {
		a.x, a.known = e.Explain([]byte(host))
		return a
	})
	if err != nil {
		return x, false, err
	}
	x = a.x
	if d.parts.Store != nil {
		a.known = d.explainStored(ctx, host, &x) || a.known
	}
	d.parts.Reserver.explain(ctx, &x)
	x.Why = explain.Text(x.Reasons)
	return x, a.known, nil
}

// explainStored adds what the embedded index knows of a host. It reports whether the index knows
// it.
func (d *Daemon) explainStored(ctx context.Context, host string, x *engine.Explanation) (known bool) {
	l, err := d.parts.Store.HostStatus(ctx, []byte(host))
	if err != nil {
		x.Reasons = append(x.Reasons, explain.Reason{Kind: explain.IndexSilent, By: err.Error()})
		return true
	}
	if d.outcomesWaiting()+d.returns.pending() > 0 {
		l.Transit.Slots = 0 // some have ended or were returned, and the index has not acknowledged that
	}
	if x.Blocked == 0 && !l.Blocked.IsZero() {
		x.Blocked = d.moment(l.Blocked)
	}
	if x.Queued > 0 || x.InFlight > 0 {
		if !l.Blocked.IsZero() && !x.Is(explain.BlockedByOperator) {
			x.Reasons = append(x.Reasons, explain.Reason{Kind: explain.IndexBlocked, Until: l.Blocked})
		}
		x.Reasons = append(x.Reasons, explain.Turns(&l, x.Rule)...)
		return true
	}
	x.Next = max(x.Next, d.moment(l.AtSlots.NotBefore))
	d.addLevels(&l, x)
	blocked := x.Is(explain.BlockedByOperator) || x.Is(explain.BlockedByRule)
	waits := d.waits(&l, x)
	if blocked && !l.Blocked.IsZero() {
		if l.AtSlots.NotBefore.Equal(l.Blocked) {
			waits = nil
		}
		l.Blocked = time.Time{} // the reasons name the block already
	}
	stored := explain.Stored(&l, waits)
	switch {
	case stored == nil:
		return false
	case blocked:
		x.Reasons = append(x.Reasons, stored...)
	default:
		x.Reasons = append(stored, x.Pace)
		if x.Paused && l.Scheduled > 0 {
			x.Reasons = append(x.Reasons, explain.Reason{Kind: explain.Paused})
		}
	}
	return true
}

// addLevels adds the pace that URL Frontier clients keep to the site and the address of a host, if
// the slots know no address of the host, or if clients got a URL of it after its last request by
// the slots.
func (d *Daemon) addLevels(l *docindex.HostStatus, x *engine.Explanation) {
	if l.Site.Name == "" || x.Address.Name != "" && d.moment(l.Site.Last) <= x.Site.Last {
		return
	}
	x.Site, x.SiteWhy = d.levelView(&l.Site), nil
	if strings.HasPrefix(l.Address.Name, noAddress) {
		l.Address = docindex.LevelStatus{}
	}
	x.Address, x.AddressWhy = d.levelView(&l.Address), nil
	if addr, err := netip.ParseAddr(l.Address.Name); err == nil && l.Address.Level == docindex.AddressWait {
		x.Addr = addr
	}
	why := explain.Available(&l.AtFrontier, x.Rule)
	switch w := &l.AtFrontier.Wait; w.Rule {
	case docindex.WaitAddress, docindex.WaitAddressInUse:
		if w.Level != docindex.SiteWait {
			x.AddressWhy = []explain.Reason{why}
			break
		}
		fallthrough
	case docindex.WaitHostBlocked, docindex.WaitHostDelay, docindex.WaitHostPaused, docindex.WaitHostGap,
		docindex.WaitRuleGap, docindex.WaitRuleBlocks, docindex.WaitAtFrontier:
		x.SiteWhy = []explain.Reason{why}
	}
}

// levelView converts the pace of a level as the index has it. A level without a name becomes the zero LevelView.
func (d *Daemon) levelView(l *docindex.LevelStatus) hostslots.LevelView {
	if l.Name == "" {
		return hostslots.LevelView{}
	}
	v := hostslots.LevelView{
		Level: [...]hostslots.Level{hostslots.SiteLevel, hostslots.AddressLevel, hostslots.NetworkLevel}[l.Level],
		Name:  l.Name, Gap: l.Gap, Open: l.Open, MostOpen: l.MostOpen, Last: d.moment(l.Last),
		Next: d.moment(l.Next), Backoff: l.Backoff,
	}
	if l.Sites != "" {
		v.Failing = strings.Split(l.Sites, ", ")
	}
	return v
}

// waits returns why the index hands out nothing of a host now: to the slots, and to URL Frontier
// clients if the daemon serves them.
func (d *Daemon) waits(l *docindex.HostStatus, x *engine.Explanation) []explain.Reason {
	slots := explain.Available(&l.AtSlots, x.Rule)
	if slots.Kind == explain.None {
		slots = x.Unasked
	}
	if text := d.indexErr.Load(); slots.Kind == explain.None && text != nil && *text != "" {
		slots = explain.Reason{Kind: explain.IndexFailed, By: *text}
	}
	if slots.Kind == explain.None {
		slots.Kind = explain.ComesNext
	}
	clients := explain.Available(&l.AtFrontier, x.Rule)
	switch {
	case d.Settings().Frontier.Listen == "":
		return []explain.Reason{slots}
	case clients.Kind == explain.None:
		return []explain.Reason{slots, {Kind: explain.ClientsMayHaveIt}}
	case explain.SameAvailability(&l.AtFrontier, &l.AtSlots):
		return []explain.Reason{slots}
	}
	return []explain.Reason{slots, {Kind: explain.ClientsWait, By: clients.String()}}
}

// moment converts a date to the daemon's monotonic clock; the zero Time is 0.
func (d *Daemon) moment(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return d.clock() + time.Until(t)
}
