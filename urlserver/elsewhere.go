package urlserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// Explain tells about a host; ok is false where neither the slots nor the embedded index know it. Date turns its
// times into dates.
func (d *Daemon) Explain(ctx context.Context, host string) (x engine.Explanation, ok bool, err error) {
	type told struct {
		x     engine.Explanation
		known bool
	}
	t, err := answerOf(ctx, d, func(e *engine.Engine) (t told) {
		t.x, t.known = e.Explain([]byte(host))
		return t
	})
	if err != nil {
		return x, false, err
	}
	x = t.x
	if d.parts.Store != nil {
		t.known = d.explainStored(ctx, host, &x) || t.known
	}
	d.parts.Reserver.explain(ctx, &x)
	return x, t.known, nil
}

// explainStored adds what the embedded index knows of a host; known is whether that is anything.
func (d *Daemon) explainStored(ctx context.Context, host string, x *engine.Explanation) (known bool) {
	l, err := d.parts.Store.HostStatus(ctx, []byte(host))
	if err != nil {
		x.Why = join(x.Why, "the doc index does not answer: "+err.Error())
		return true
	}
	if d.outbox.pending()+d.returns.pending() > 0 {
		l.Transit.Slots = 0 // some of that has ended or was returned here, and the index is to hear of it
	}
	if x.Blocked == 0 && !l.Blocked.IsZero() {
		x.Blocked = d.moment(l.Blocked)
	}
	if x.Queued > 0 || x.InFlight > 0 {
		if !l.Blocked.IsZero() && !strings.Contains(x.Why, "blocked by the operator") {
			x.Why = join(x.Why, "what waits in the doc index is blocked by the operator until "+engine.Dated(l.Blocked))
		}
		return true
	}
	x.Next = max(x.Next, d.moment(l.AtSlots.NotBefore))
	saysBlock := strings.HasPrefix(x.Why, "blocked") // by the operator or a rule
	waits := d.waits(&l, x)
	if saysBlock && !l.Blocked.IsZero() {
		if l.AtSlots.NotBefore.Equal(l.Blocked) {
			waits = ""
		}
		l.Blocked = time.Time{} // that is said already
	}
	text := stored(&l, waits)
	switch {
	case text == "":
		return false
	case saysBlock:
		x.Why = join(x.Why, text)
	default:
		x.Why = text + x.Pace
	}
	return true
}

// stored says in words what an index has of a host that this daemon holds nothing of; "": nothing.
func stored(l *docindex.HostStatus, waits string) string {
	n, some := l.Scheduled, ""
	if l.Truncated {
		some = "at least "
	}
	if out := l.Transit.Slots + l.Transit.Frontier + l.Transit.Remote; out > 0 {
		text := fmt.Sprintf("%d of its documents are out, but not here: %s; until they are back or their leases end nothing of it is sent from here", out, outText(&l.Transit))
		if n > 0 {
			text = join(text, fmt.Sprintf("%s%d more wait in the doc index", some, n))
		}
		return join(text, waits)
	}
	switch {
	case n > 0:
		return join(fmt.Sprintf("nothing of it is held here; %s%d of its documents wait in the doc index", some, n), waits)
	case l.Completed > 0:
		return fmt.Sprintf("nothing is to be fetched: all its documents in the doc index are completed (%s%d)", some, l.Completed)
	case !l.Blocked.IsZero():
		return "blocked by the operator until " + engine.Dated(l.Blocked) + "; no document of it is known"
	case l.Delay > 0:
		return fmt.Sprintf("no document of it is known; the operator's delay of %v will hold for what comes", l.Delay)
	}
	return ""
}

func outText(out *docindex.TransitCounts) string {
	var parts []string
	for _, p := range []struct {
		n   uint64
		who string
	}{
		{out.Frontier, "clients of the URL Frontier"},
		{out.Remote, "daemons that took them as candidates over HTTP"},
		{out.Slots, "the slots of another daemon on this index, or on their way between it and those of this one"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d with %s", p.n, p.who))
		}
	}
	return strings.Join(parts, ", ")
}

// waits says why nothing of a host comes from the index now: to the slots, and to clients where there may be any.
func (d *Daemon) waits(l *docindex.HostStatus, x *engine.Explanation) string {
	slots := turn(&l.AtSlots, x)
	if slots == "" {
		slots = x.Unasked
	}
	if text := d.indexErr.Load(); slots == "" && text != nil && *text != "" {
		slots = "the doc index failed: " + *text
	}
	if slots == "" {
		slots = "due now; it comes with the next request to the doc index"
	}
	if d.Settings().Frontier.Listen == "" || turn(&l.AtFrontier, x) == turn(&l.AtSlots, x) && turn(&l.AtFrontier, x) != "" {
		return slots
	}
	if calls := turn(&l.AtFrontier, x); calls != "" {
		return slots + "; to clients of the URL Frontier: " + calls
	}
	return slots + "; clients of the URL Frontier may have it now"
}

// turn says from when on something is given out, and by which rule not before; "": it is now.
func turn(t *docindex.Availability, x *engine.Explanation) string {
	why := t.Why
	if t.ByRule && x.Rule != "" {
		why = strings.Replace(why, "a rule", x.Rule, 1)
	}
	if t.Open || t.NotBefore.IsZero() {
		return why
	}
	return "not before " + engine.Dated(t.NotBefore) + ": " + why
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// moment is a date by the daemon's monotonic clock; 0 for none.
func (d *Daemon) moment(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return d.clock() + time.Until(t)
}
