package livefeed

import (
	"cmp"
	"context"
	"sort"
	"time"
)

const (
	namedHosts   = 3  // of a slot
	blockedHosts = 16 // of all
)

// Top lists the slots with most documents, those with the longest gaps, and blocked hosts.
type Top struct {
	Busiest    []Slot    `json:"busiest"`         // by documents held
	Slowest    []Slot    `json:"slowest"`         // by gap
	Blocked    []Blocked `json:"blocked"`         // some of them
	BlockedAll int       `json:"blocked_all"`     // by the operator, those not listed among them
	ByRule     []Blocked `json:"blocked_by_rule"` // some of those that documents are held for
	MoreByRule bool      `json:"more_by_rule"`    // there are others
}

// Slot is a host slot in use.
type Slot struct {
	Slot     uint32     `json:"slot"`
	Group    string     `json:"group"`
	Hosts    []string   `json:"hosts"`  // some of them
	Held     int        `json:"held"`   // by its group, beyond the slot's length, too
	Queued   int        `json:"queued"` // in the slot, not at a spider
	Active   int        `json:"active"`
	NextSend *time.Time `json:"next_send"` // not before
	Gap      float64    `json:"gap_s"`
	HeldBy   *string    `json:"held_by"` // the level that holds it back: site, address or network
}

// Blocked is a host that the operator or a rule has blocked.
type Blocked struct {
	Host  string     `json:"host"`
	Until *time.Time `json:"until"` // null: as long as the rule stands
	By    string     `json:"by"`    // "operator" or "rule"
}

// Top returns the lists. Slots are chosen by a state that is at most staleAfter old.
func (f *Feed) Top(ctx context.Context) (t Top, err error) {
	asked := f.do(ctx, func(ctx context.Context) { t, err = f.top(ctx) })
	return t, cmp.Or(asked, err)
}

func (f *Feed) top(ctx context.Context) (t Top, err error) {
	if err := f.refreshAll(ctx); err != nil {
		return t, err
	}
	var busy, slow []topEntry
	for i := range f.chunks {
		for _, e := range f.chunks[i].busy {
			busy = insertTop(busy, e, busier)
		}
		for _, e := range f.chunks[i].slow {
			slow = insertTop(slow, e, slower)
		}
	}
	if t.Busiest, err = f.describe(ctx, busy); err != nil {
		return t, err
	}
	if t.Slowest, err = f.describe(ctx, slow); err != nil {
		return t, err
	}
	blocked, all, err := f.cfg.Source.Blocked(ctx, blockedHosts)
	if err != nil {
		return t, err
	}
	sort.Slice(blocked, func(i, j int) bool { return blocked[i].Until < blocked[j].Until })
	t.Blocked, t.BlockedAll = []Blocked{}, all
	for _, b := range blocked {
		until := f.date(b.Until)
		t.Blocked = append(t.Blocked, Blocked{Host: b.Host, Until: &until, By: "operator"})
	}
	names, more, err := f.cfg.Source.RuleBlocked(ctx, blockedHosts)
	if err != nil {
		return t, err
	}
	t.ByRule, t.MoreByRule = []Blocked{}, more
	for _, name := range names {
		t.ByRule = append(t.ByRule, Blocked{Host: name, By: "rule"})
	}
	return t, nil
}

// describe reads the present state of the slots of a list.
func (f *Feed) describe(ctx context.Context, list []topEntry) ([]Slot, error) {
	numbers := make([]uint32, len(list))
	for i, e := range list {
		numbers[i] = e.slot
	}
	views, err := f.cfg.Source.SlotsNumbered(ctx, numbers, namedHosts)
	if err != nil {
		return nil, err
	}
	slots := make([]Slot, 0, len(views))
	for _, v := range views {
		s := Slot{
			Slot: v.Slot, Group: v.Group, Hosts: append([]string{}, v.Hosts...), Held: v.Held,
			Queued: v.Queued, Active: v.Active, Gap: float64(v.Gap.Milliseconds()) / 1e3,
		}
		if v.Next > 0 {
			next := f.date(v.Next)
			s.NextSend = &next
		}
		if level := v.HeldBy.String(); level != "" {
			s.HeldBy = &level
		}
		slots = append(slots, s)
	}
	return slots, nil
}

func (f *Feed) date(t time.Duration) time.Time {
	return f.cfg.Source.Date(t).UTC().Truncate(time.Millisecond)
}
