package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"urlserver/reservation"
)

// changeKey is the key of the change of an alias that is in progress, or of the last one.
const changeKey = "c"

// The phases of a change. A phase ends when every record that it concerns has passed it.
const (
	over     = iota // no change is in progress
	freezing        // nobody can lease the concerned records, or change their alias or binding
	applying        // former and new hosts get their alias; a lease that covers one covers all
	thawing
)

// change is one change of an alias.
type change struct {
	By    string   `json:"by"`
	ID    uint64   `json:"id"`
	Phase int      `json:"phase"`
	Alias string   `json:"alias"`
	Hosts []string `json:"hosts"`
	// The result of the phase freezing.
	Names  []string `json:"names"`  // keys of the alias, its former hosts and its new ones
	From   []string `json:"from"`   // the keys in Names, and the groups of the new hosts
	Losing []string `json:"losing"` // other aliases that lose hosts
	Next   int64    `json:"next"`
	Refs   []ref    `json:"refs"`
}

// SetAlias implements [reservation.Store.SetAlias].
func (s *Store) SetAlias(ctx context.Context, alias string, hosts []string) error {
	hosts, err := reservation.CheckAlias(alias, hosts)
	if err != nil {
		return err
	}
	if err := s.clash(ctx, alias, hosts); err != nil {
		return err
	}
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.changeAlias(ctx, alias, func() ([]string, bool, error) { return hosts, true, nil })
}

// clash returns an error if a host and an alias would have the same name.
func (s *Store) clash(ctx context.Context, alias string, hosts []string) error {
	clash, err := s.read(ctx, hostKey(alias))
	if err != nil {
		return err
	}
	if clash.Added {
		return fmt.Errorf("%w alias %s: a host has this name", reservation.ErrInvalid, alias)
	}
	for _, host := range hosts {
		if clash, err = s.read(ctx, aliasKey(host)); err != nil {
			return err
		}
		if len(clash.Hosts) > 0 {
			return fmt.Errorf("%w host %s: an alias has this name", reservation.ErrInvalid, host)
		}
	}
	return nil
}

// step is how far the changes of aliases had got when a call last looked.
type step struct {
	id    uint64
	phase int
}

// next returns the number of an attempt that read c. If the changes have made a step since the last
// attempt, it returns busyTries at most. So a call gives up when nothing makes progress, or when its
// context ends, and not because many others were before it.
func (s *step) next(c change, try int) int {
	if now := (step{c.ID, c.Phase}); now != *s {
		*s = now
		return min(try, busyTries)
	}
	return try
}

// changeAlias sets the hosts of an alias to the result of want. It calls want while no change is in
// progress, and again if another change came first. want may report that nothing changes. The caller holds
// s.changing, which calls of one process get in the order in which they came. A change takes some 20 calls of
// the KV, and ten more for each host of the alias, Config.Parallel at a time. So of many callers that come at
// once, the last ones may run out of time; they have to try again.
func (s *Store) changeAlias(ctx context.Context, alias string,
	want func() (hosts []string, changes bool, err error)) error {
	var seen step
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return err
		}
		if err := s.finishChange(ctx, anyChange); err != nil {
			return err
		}
		c, raw, err := s.readChange(ctx)
		if err != nil {
			return err
		}
		try = seen.next(c, try)
		if c.Phase != over {
			continue
		}
		hosts, changes, err := want()
		if err != nil || !changes {
			return err
		}
		c = change{ID: c.ID + 1, Phase: freezing, Alias: alias, Hosts: hosts}
		if err := s.readable(ctx, c); err != nil {
			return err
		}
		if ok, err := s.swapChange(ctx, raw, c); err != nil {
			return err
		} else if ok {
			return s.finishChange(ctx, c.ID)
		}
	}
}

func (s *Store) readChange(ctx context.Context) (c change, raw []byte, err error) {
	raw, err = s.cfg.KV.Get(ctx, changeKey)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, nil, fmt.Errorf("reservations: the change of an alias: %w", err)
	}
	return c, raw, nil
}

func (s *Store) swapChange(ctx context.Context, was []byte, c change) (bool, error) {
	c.By = fmt.Sprintf("%s.%d", s.cfg.ID, s.writes.Add(1))
	ok, _, err := s.swap(ctx, changeKey, c, func(raw []byte) (bool, error) {
		return s.cfg.KV.CompareAndSwap(ctx, changeKey, was, raw)
	})
	return ok, err
}

// anyChange stands for the IDs of all changes.
const anyChange = 0

// finishChange completes the change with the ID if it is in progress, whichever process began it.
// With anyChange it completes changes until none is in progress. Many processes may complete a
// change at once: each step is done to a record once, and a late process finds that the record has
// passed the step.
func (s *Store) finishChange(ctx context.Context, id uint64) error {
	var seen step
	for try := 0; ; {
		if err := s.pause(ctx, try); err != nil {
			return err
		}
		c, raw, err := s.readChange(ctx)
		if err != nil || c.Phase == over || id != anyChange && c.ID != id {
			return err
		}
		try = seen.next(c, try)
		switch c.Phase {
		case freezing:
			c, err = s.freezeAll(ctx, c)
		case applying:
			err = s.applyAll(ctx, c)
		case thawing:
			err = s.thawAll(ctx, c)
		}
		if err != nil {
			return err
		}
		if c.Phase++; c.Phase > thawing {
			c = change{ID: c.ID}
		}
		ok, err := s.swapChange(ctx, raw, c)
		if err != nil {
			return err
		}
		if !ok { // another process was faster; continue from its state
			try++
		}
	}
}

// freezeAll freezes the records that a change concerns, and collects their keys. A late process may find other
// ones than the process that was faster. It freezes none that a later change has frozen; those that the change
// does not thaw, because they are not in From, the janitor thaws.
func (s *Store) freezeAll(ctx context.Context, c change) (change, error) {
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return c, err
	}
	c, err = s.concerned(ctx, c, now, func(keys []string) ([]*versioned, error) {
		return s.updateAll(ctx, keys, func(_ string, r *record) bool {
			if r.Change >= c.ID || r.Frozen >= c.ID {
				return false
			}
			r.Frozen, r.Applied = c.ID, false
			return true
		})
	})
	if err != nil {
		return c, err
	}
	return c, s.gather(ctx, &c, now)
}

// readable returns an error if a record that a change would concern is damaged: it could not be completed, and
// no other change could begin.
func (s *Store) readable(ctx context.Context, c change) error {
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return err
	}
	_, err = s.concerned(ctx, c, now, func(keys []string) ([]*versioned, error) {
		all, errs := s.readEach(ctx, keys)
		return all, firstOf(errs...)
	})
	return err
}

// concerned collects the keys of the records that a change concerns. It calls freeze for them, those first that
// tell which the others are.
func (s *Store) concerned(ctx context.Context, c change, now int64,
	freeze func(keys []string) ([]*versioned, error)) (change, error) {
	c.Names, c.Losing, c.Refs = nil, nil, nil
	a, err := freeze([]string{aliasKey(c.Alias)})
	if err != nil {
		return c, err
	}
	c.Names = append(c.Names, a[0].key)
	for _, host := range slices.Concat(a[0].Hosts, c.Hosts) {
		addTo(&c.Names, hostKey(host))
	}
	hosts, err := freeze(c.Names[1:])
	if err != nil {
		return c, err
	}
	c.From = slices.Clone(c.Names)
	news := hosts[:0]
	for _, h := range hosts {
		if !slices.Contains(c.Hosts, h.name()) {
			continue
		}
		news = append(news, h)
		if h.Alias == "" && h.Bound != "" && h.BoundTo > now {
			addTo(&c.From, hostKey(h.Bound)) // so that its binding stays
		}
		if h.Alias != "" && h.Alias != c.Alias {
			addTo(&c.Losing, aliasKey(h.Alias))
		}
	}
	if _, err := freeze(c.From[len(c.Names):]); err != nil {
		return c, err
	}
	groups, errs := make([]*versioned, len(news)), make([]error, len(news))
	s.together(len(news), func(i int) { groups[i], errs[i] = s.group(ctx, news[i], now) })
	if err := firstOf(errs...); err != nil {
		return c, err
	}
	frozen := len(c.From)
	for _, g := range groups {
		addTo(&c.From, g.key)
	}
	_, err = freeze(c.From[frozen:])
	return c, err
}

// thawLate thaws a record that a late process has frozen for a change that is over: the last one, or one before.
func (s *Store) thawLate(ctx context.Context, c *versioned, last uint64) error {
	late := func(r *record) bool { return r.Frozen != 0 && r.Frozen <= last }
	if !late(&c.record) {
		return nil
	}
	after, err := s.update(ctx, c.key, func(r *record) (changed bool) {
		if changed = late(r); changed {
			r.Frozen, r.Applied = 0, false
		}
		return changed
	})
	if err != nil {
		return err
	}
	*c = *after
	return nil
}

// gather collects the latest next-request time and all live leases of the frozen records.
func (s *Store) gather(ctx context.Context, c *change, now int64) error {
	all, errs := s.readEach(ctx, c.From)
	if err := firstOf(errs...); err != nil {
		return err
	}
	for _, r := range all {
		if r.Busy != "" { // without checking its end: whoever expires it also removes the references
			addTo(&c.Refs, ref{r.key, r.Token})
		}
		for _, w := range r.Waits {
			addTo(&c.Refs, w)
		}
		c.Next = max(c.Next, r.Next)
	}
	return nil
}

func (s *Store) applyAll(ctx context.Context, c change) error {
	errs := make([]error, len(c.Refs))
	s.together(len(c.Refs), func(i int) { // so that whoever ends the lease updates all of them
		r := c.Refs[i]
		_, errs[i] = s.update(ctx, r.Key, func(g *record) (changed bool) {
			if g.Busy == "" || g.Token != r.Token {
				return false
			}
			for _, name := range c.Names {
				changed = name != r.Key && addTo(&g.Covers, name) || changed
			}
			return changed
		})
	})
	if err := firstOf(errs...); err != nil {
		return err
	}
	_, err := s.updateAll(ctx, slices.Concat(c.Names, c.Losing), func(key string, r *record) bool {
		if r.Frozen != c.ID || r.Applied {
			return false
		}
		r.Applied = true
		c.apply(key, r)
		return true
	})
	return err
}

// apply applies the change to one record.
func (c change) apply(key string, r *record) {
	switch {
	case key == aliasKey(c.Alias):
		r.Hosts = c.Hosts
	case isAlias(key): // it loses hosts
		r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(h string) bool {
			return slices.Contains(c.Hosts, h)
		})
		return
	case slices.Contains(c.Hosts, key[1:]):
		r.Alias = c.Alias
	case r.Alias == c.Alias:
		r.Alias = ""
	}
	cover(r, key, c.Refs, c.Next)
}

func (s *Store) thawAll(ctx context.Context, c change) error {
	_, err := s.updateAll(ctx, c.From, func(_ string, r *record) bool {
		if r.Frozen != c.ID {
			return false
		}
		r.Frozen, r.Applied, r.Change = 0, false, c.ID
		if at := max(r.Due, r.Next); r.Added && r.Row > at {
			r.Row = at
		}
		return true
	})
	return err
}

// GetAlias implements [reservation.Store.GetAlias].
func (s *Store) GetAlias(ctx context.Context, name string) (alias string, hosts []string, err error) {
	a, err := s.read(ctx, aliasKey(name))
	if err != nil {
		return "", nil, err
	}
	if len(a.Hosts) == 0 {
		host, err := reservation.Host(name)
		if err != nil {
			return "", nil, err
		}
		h, err := s.read(ctx, hostKey(host))
		if err != nil {
			return "", nil, err
		}
		if h.Alias == "" {
			return "", nil, fmt.Errorf("%w: %.100q is no alias, nor a host in one",
				reservation.ErrUnknown, name)
		}
		if a, err = s.read(ctx, aliasKey(h.Alias)); err != nil {
			return "", nil, err
		}
	}
	return a.name(), a.Hosts, nil
}
