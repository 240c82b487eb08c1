package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"urlserver/docindex"
	"urlserver/hostslots"
	"urlserver/urlserver/explain"
)

// HostRow is one host in a list of hosts.
type HostRow struct {
	Name         string
	Held         int           // documents that have not ended, those at spiders among them
	InFlight     int           // of them: at spiders
	Next         time.Duration // no request before
	BlockedUntil time.Duration // by the operator; 0: it is not
	RuleBlocked  bool          // by a rule
	Rule         string        // for people, where RuleBlocked
	Fetched      Fetched
	HeldBy       hostslots.Level // whose pace keeps it from being requested
	Why          string          // what holds that level back, until when, and by which rule

	key int64
}

// HostOrder is what a list of hosts is sorted by. The values below docindex.Classes are counts by
// docindex.Class; only classes that say something of a host are counted.
type HostOrder int

const (
	ByHeld HostOrder = iota + HostOrder(docindex.Classes)
	ByDone
	ByFetchTime
	ByNext
	ByErrorTime
	ByHostName
)

// HostWalk makes a list of the first hosts in an order.
type HostWalk struct {
	Text    []byte // only hosts whose names contain it; empty: all
	Failed  bool   // only those of which a document failed
	Blocked bool   // only those that the operator or a rule has blocked
	Order   HostOrder
	Reverse bool // the least first
	Limit   int  // at most so many

	All     int // hosts that were looked at
	Matched int // of them: that belong in the list, shown or not
	Rows    []HostRow
	Exact   bool // the slots know a host whose whole name is Text; set by FinishHosts

	next uint32
}

// hostsStep is how many hosts a call of WalkHosts looks at: some hundred microseconds' worth.
const hostsStep = 1024

// WalkHosts does the next step of a walk. more reports whether the walk has steps left. A host that
// comes or goes during the walk may be in the list or not.
func (e *Engine) WalkHosts(w *HostWalk) (more bool) {
	w.next = e.slots.Hosts(w.next, hostsStep, func(id uint32) {
		w.All++
		h, f := e.slots.Host(id).Summary(), e.outcomes.byHost.look(id, e.slots.Host(id).Hash())
		if w.wants(&h, &f) {
			w.Matched++
			w.keep(&h, &f)
		}
	})
	return w.next != 0
}

func (w *HostWalk) wants(h *hostslots.HostSummary, f *hostCounters) bool {
	return (!w.Failed || f.failed) && (!w.Blocked || h.RuleBlocked || h.BlockedUntil != 0) &&
		bytes.Contains(h.Name, w.Text)
}

// keep puts a host into the list where it belongs among the first.
func (w *HostWalk) keep(h *hostslots.HostSummary, f *hostCounters) {
	row := HostRow{key: w.keyOf(h, f)}
	if n := len(w.Rows); n == w.Limit {
		if n == 0 || !w.before(row.key, h.Name, &w.Rows[n-1]) {
			return
		}
		w.Rows = w.Rows[:n-1]
	}
	row.Name, row.Held, row.Next, row.BlockedUntil, row.RuleBlocked = string(h.Name), h.Held, h.Next,
		h.BlockedUntil, h.RuleBlocked
	row.Fetched = f.view()
	at, _ := slices.BinarySearchFunc(w.Rows, row, func(have, _ HostRow) int {
		if w.before(row.key, h.Name, &have) {
			return 1
		}
		return -1
	})
	w.Rows = slices.Insert(w.Rows, at, row)
}

// keyOf is larger for what comes first, unless Reverse is set.
func (w *HostWalk) keyOf(h *hostslots.HostSummary, f *hostCounters) int64 {
	switch w.Order {
	case ByHeld:
		return int64(h.Held)
	case ByDone:
		v := Fetched{Classes: f.classes}
		return int64(v.Done())
	case ByFetchTime:
		v := f.view()
		return int64(v.Mean)
	case ByNext:
		return int64(max(h.Next, h.BlockedUntil))
	case ByErrorTime:
		return int64(f.errorAt)
	case ByHostName:
		return 0
	}
	if int(w.Order) < hostClasses {
		return int64(f.classes[w.Order])
	}
	return 0
}

// before reports whether a host comes before a row. Names decide between equals.
func (w *HostWalk) before(key int64, name []byte, row *HostRow) bool {
	byKey := cmp.Compare(row.key, key)
	byName := cmp.Compare(string(name), row.Name)
	if w.Order == ByHostName {
		byKey = byName
	}
	if w.Reverse {
		byKey = -byKey
	}
	return cmp.Or(byKey, byName) < 0
}

// FinishHosts completes the rows of a walk that is at its end with what takes longer to find out.
func (e *Engine) FinishHosts(w *HostWalk) {
	w.Exact = e.slots.FindHost(w.Text) != 0
	for i := range w.Rows {
		r := &w.Rows[i]
		id := e.slots.FindHost([]byte(r.Name))
		if id == 0 {
			continue // forgotten since
		}
		x := Explanation{HostView: e.slots.Host(id).View()}
		e.applyTo(&x, []byte(r.Name))
		level, reasons := e.heldBy(&x)
		r.InFlight, r.HeldBy, r.Why = x.InFlight, level, explain.Text(reasons)
		if r.RuleBlocked {
			r.Rule = e.rules.set.Name(x.Limits.SiteRule)
		}
	}
}

// RuleBlocked returns hosts with documents that a rule blocks, at most so many. more: there are
// others.
func (e *Engine) RuleBlocked(most int) (names []string, more bool) { return e.slots.RuleBlocked(most) }
