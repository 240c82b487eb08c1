package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"urlserver/reservation"
)

func unknown(host string) error { return fmt.Errorf("%w: host %s", reservation.ErrUnknown, host) }

func asNotNow(err error, to *notNow) bool { return errors.As(err, to) }

// Do implements [reservation.Store.Do].
func (s *Store) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	answers := make([]reservation.Answer, len(calls))
	s.together(len(calls), func(i int) { answers[i] = s.do(ctx, calls[i]) })
	return answers
}

func (s *Store) do(ctx context.Context, c reservation.Call) (a reservation.Answer) {
	c, err := c.Checked()
	if err != nil {
		return reservation.Answer{Err: err}
	}
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return reservation.Answer{Err: fmt.Errorf("reservations: the clock: %w", err)}
	}
	at := s.passed(c.Moment(now), now)
	switch c.Verb {
	case reservation.AddHost:
		a.Added, a.Err = s.add(ctx, c.Host, at)
	case reservation.DeleteHost:
		a.Err = s.remove(ctx, c, at, now)
	case reservation.TryReserve:
		a.Reservation, a.Err = s.reserve(ctx, c, nil, now)
	case reservation.ExtendHost:
		var end int64
		end, a.Err = s.extend(ctx, c, now)
		a.LeaseEnd = reservation.Time(end)
	case reservation.ReleaseHost:
		a.Err = s.release(ctx, c.Host, c.Token, at, now)
	}
	return a
}

func (s *Store) add(ctx context.Context, host string, due int64) (added bool, err error) {
	alias, err := s.read(ctx, aliasKey(host))
	if err != nil {
		return false, err
	}
	if len(alias.Hosts) > 0 {
		return false, fmt.Errorf("%w host %s: an alias has this name", reservation.ErrInvalid, host)
	}
	_, err = s.update(ctx, hostKey(host), func(h *record) bool {
		added = !h.Added
		if h.Added && due >= h.Due {
			return false
		}
		h.Added, h.Due = true, due
		if at := max(due, h.Next); added || at < h.Row {
			h.Row = at
		}
		return true
	})
	return added && err == nil, err
}

func (s *Store) remove(ctx context.Context, c reservation.Call, next, now int64) error {
	h, err := s.read(ctx, hostKey(c.Host))
	if err != nil {
		return err
	}
	if h.Added && h.isLeased(c.Host, c.Token, now) {
		if ok, err := s.removeLeased(ctx, h, next); ok || err != nil {
			return err
		}
		h = nil
	}
	p, err := s.readBoth(ctx, c.Host, h, now)
	if err != nil {
		return err
	}
	if !p.h.Added {
		return unknown(c.Host)
	}
	_, _, idle := s.leased(ctx, c.Host, p.h.Token, now)
	if c.Token != 0 || idle == nil {
		if err := s.release(ctx, c.Host, c.Token, next, now); err != nil {
			return err
		}
	} else if next > now && p.g != p.h {
		if _, err := s.update(ctx, p.g.key, func(g *record) bool {
			later := g.Next < next
			g.Next = max(g.Next, next)
			return later
		}); err != nil {
			return err
		}
	}
	row := int64(0)
	_, err = s.update(ctx, hostKey(c.Host), func(h *record) bool {
		row = h.Row
		h.Added, h.Row = false, 0
		if c.Token == 0 && next > now {
			h.Next = max(h.Next, next)
		}
		return true
	})
	if err != nil {
		return err
	}
	return s.unqueue(ctx, row, c.Host)
}

// removeLeased removes a host whose own record is leased, as read, and ends the lease. It reports
// false if another process changed the record meanwhile.
func (s *Store) removeLeased(ctx context.Context, h *versioned, next int64) (bool, error) {
	row, over := h.Row, s.end(h, next)
	h.Added, h.Row = false, 0
	if ok, err := s.write(ctx, h, row); !ok || err != nil {
		return false, err
	}
	if err := s.propagate(ctx, over); err != nil {
		return true, err
	}
	return true, s.unqueue(ctx, row, h.name())
}

// Bind implements [reservation.Store.Bind].
func (s *Store) Bind(ctx context.Context, bindings []reservation.Binding, ttl time.Duration) (
	[]reservation.Bound, error) {
	bindings, err := reservation.CheckedBindings(bindings)
	if err != nil {
		return nil, err
	}
	ms, err := reservation.TTLMillis(ttl)
	if err != nil {
		return nil, err
	}
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("reservations: the clock: %w", err)
	}
	all, errs := make([]reservation.Bound, len(bindings)), make([]error, len(bindings))
	s.together(len(bindings), func(i int) { all[i], errs[i] = s.bind(ctx, bindings[i], now, ms) })
	if err := firstOf(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// bind writes a binding for ttl ms into the host's record, unless one that lasts as long is there.
// If leases cover the host, or nobody may lease it yet, bind first makes that hold for the host's
// group, too.
func (s *Store) bind(ctx context.Context, b reservation.Binding, now, ttl int64) (
	bound reservation.Bound, err error) {
	late := s.late()
	until := now + ttl + late
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return bound, err
		}
		h, err := s.read(ctx, hostKey(b.Host))
		if err != nil {
			return bound, err
		}
		if h.Frozen != 0 {
			if err := s.finishChange(ctx, anyChange); err != nil {
				return bound, err
			}
			continue
		}
		was := h.record
		isNew := h.Bound == "" || h.BoundTo <= now
		if isNew {
			h.Bound, h.BoundTo = b.Group, until
		}
		via, g, err := s.groups(ctx, h, now)
		if err != nil {
			return bound, err
		}
		if isNew {
			h.answer(g)
		}
		others, err := s.othersUntil(ctx, h, via, g, now)
		if err != nil {
			return bound, err
		}
		// The binding of a host that is held back is not extended: a host whose alias changes again and again would
		// be held back for ever.
		held := others > now+reservation.MinLease.Milliseconds()
		bound = reservation.Bound{Group: g.name(), Left: time.Duration(now-others) * time.Millisecond}
		if !held {
			h.BoundTo = max(h.BoundTo, until)
			h.answer(g)
			bound.Left = time.Duration(h.BoundTo-late-now) * time.Millisecond
		}
		// A binding for MinLease ends as it is made, so there is nothing to write.
		if h.BoundTo == was.BoundTo || ttl <= reservation.MinLease.Milliseconds() {
			return bound, nil
		}
		if ok, err := s.writeBinding(ctx, h, g, was, now); ok || err != nil {
			return bound, err
		}
	}
}

// answer stores the group that answers of Bind give until the binding ends.
func (r *record) answer(g *versioned) {
	if r.Answered = g.name(); r.Answered == r.Bound {
		r.Answered = ""
	}
}

// othersUntil returns until when other processes may go by an answer of Bind that is not the group
// in force: for h, whose group is g, or for via, the name through which h belongs to g. 0: none
// does.
func (s *Store) othersUntil(ctx context.Context, h, via, g *versioned, now int64) (until int64, err error) {
	if until = h.answeredOther(g, now); via == h || via.BoundTo <= now {
		return until, nil
	}
	if via.Alias == "" { // else it has that group, too
		if g, err = s.group(ctx, via, now); err != nil {
			return 0, err
		}
	}
	return max(until, via.answeredOther(g, now)), nil
}

// answeredOther is othersUntil for one bound name.
func (r *record) answeredOther(g *versioned, now int64) int64 {
	if r.BoundTo <= now || cmp.Or(r.Answered, r.Bound) == g.name() {
		return 0
	}
	return r.BoundTo
}

// writeBinding writes a binding to g into the host's record, and reports false if another process
// changed the record or an alias meanwhile. was is the record with the binding that was read.
func (s *Store) writeBinding(ctx context.Context, h, g *versioned, was record, now int64) (bool, error) {
	lost, err := s.expire(ctx, h, now)
	if err != nil {
		return false, err
	}
	if h.Busy != "" || len(h.Waits) > 0 || h.Next > now { // else the group inherits nothing
		covered, err := s.coverGroup(ctx, h, g, was)
		if err != nil {
			return false, err
		}
		again, err := s.group(ctx, h, now)
		if err != nil {
			return false, err
		}
		if !covered || again.key != g.key { // an alias changed meanwhile
			return false, s.finishChange(ctx, anyChange)
		}
	}
	if ok, err := s.write(ctx, h, h.Row); !ok || err != nil {
		return false, err
	}
	return true, s.propagate(ctx, lost)
}

// coverGroup makes each lease that covers h, after expire, cover g, too. It reports false if g is
// frozen, or if another process changed h: it may have bound the host to another group.
func (s *Store) coverGroup(ctx context.Context, h, g *versioned, was record) (bool, error) {
	if g == h {
		return true, nil
	}
	refs := slices.Clone(h.Waits)
	for _, r := range refs {
		if r.Key == g.key {
			continue
		}
		if _, err := s.update(ctx, r.Key, func(c *record) bool {
			return c.Token == r.Token && c.Busy != "" && addTo(&c.Covers, g.key)
		}); err != nil {
			return false, err
		}
	}
	if h.Busy != "" {
		refs = append(refs, ref{h.key, h.Token})
		own := versioned{key: h.key, raw: h.raw, record: withBinding(h.record, was)}
		if addTo(&own.Covers, g.key) {
			if ok, err := s.write(ctx, &own, own.Row); !ok || err != nil {
				return false, err
			}
		}
		*h = versioned{key: h.key, raw: own.raw, record: withBinding(own.record, h.record)}
	}
	after, err := s.update(ctx, g.key, func(c *record) bool {
		return c.Frozen == 0 && cover(c, g.key, refs, h.Next)
	})
	return err == nil && after.Frozen == 0, err
}

func withBinding(r, from record) record {
	r.Bound, r.BoundTo, r.Answered = from.Bound, from.BoundTo, from.Answered
	return r
}

// cover adds references to a record, except a reference to itself, and raises the record's
// next-request time.
func cover(c *record, key string, refs []ref, next int64) (changed bool) {
	for _, r := range refs {
		if r.Key != key {
			changed = addTo(&c.Waits, r) || changed
		}
	}
	if next > c.Next {
		c.Next, changed = next, true
	}
	return changed
}

func addTo[T comparable](list *[]T, one T) bool {
	if slices.Contains(*list, one) {
		return false
	}
	*list = append(slices.Clone(*list), one)
	return true
}
