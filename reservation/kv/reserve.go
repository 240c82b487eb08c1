package kv

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"urlserver/reservation"
)

// thawTime is after how many ms a host whose alias is being changed is tried again.
const thawTime = 100

// notNow is an ErrNotNow with the time until which the host cannot be leased.
type notNow struct {
	host  string
	until int64
}

func (e notNow) Error() string { return fmt.Sprintf("%v: host %s", reservation.ErrNotNow, e.host) }
func (e notNow) Unwrap() error { return reservation.ErrNotNow }

// hostAndGroup is a host and its group, read and after expire. h and g are the same pointer if the
// host is its own group.
type hostAndGroup struct {
	h, g   *versioned
	row    int64 // the time of h's queue row as read
	frozen bool  // whether an alias of one of them is being changed
	lost   []ended
}

// readBoth reads a host and its group. If h is not nil, it is the host's record, just read.
func (s *Store) readBoth(ctx context.Context, host string, h *versioned, now int64) (p hostAndGroup,
	err error) {
	if p.h = h; h == nil {
		if p.h, err = s.read(ctx, hostKey(host)); err != nil {
			return p, err
		}
	}
	p.row = p.h.Row
	if p.g, err = s.group(ctx, p.h, now); err != nil {
		return p, err
	}
	p.frozen = p.h.Frozen != 0 || p.g.Frozen != 0
	lost, err := s.expire(ctx, p.h, now)
	if p.lost = append(p.lost, lost); err != nil || p.g == p.h {
		return p, err
	}
	lost, err = s.expire(ctx, p.g, now)
	p.lost = append(p.lost, lost)
	return p, err
}

// reserve leases one host. If h is not nil, it is the host's record, just read.
func (s *Store) reserve(ctx context.Context, c reservation.Call, h *versioned,
	now int64) (r reservation.Reservation, err error) {
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return r, err
		}
		p, err := s.readBoth(ctx, c.Host, h, now)
		h = nil
		if err != nil {
			return r, err
		}
		if !p.h.Added {
			return r, unknown(c.Host)
		}
		if p.frozen {
			return r, notNow{c.Host, now + thawTime}
		}
		until := max(p.h.Due, p.h.Next, p.g.Next)
		for _, cell := range []*versioned{p.h, p.g} {
			end, _, err := s.busyUntil(ctx, cell)
			if err != nil {
				return r, err
			}
			until = max(until, end)
		}
		if until > now {
			return r, notNow{c.Host, until}
		}
		r = reservation.Reservation{
			Host: c.Host, Group: p.g.name(), Token: max(p.h.Token, p.g.Token) + 1,
			LeaseEnd: time.UnixMilli(now + c.Lease.Milliseconds()),
		}
		if ok, err := s.take(ctx, p, r, c.Holder, now); ok || err != nil {
			return r, err
		}
	}
}

// take makes the group's record busy, then updates the host's, and reports whether nobody was
// faster at either.
func (s *Store) take(ctx context.Context, p hostAndGroup, r reservation.Reservation, holder string,
	now int64) (bool, error) {
	end := s.passed(r.LeaseEnd.UnixMilli(), now)
	g, h := p.g, p.h
	g.Token, g.Busy, g.Holder, g.End, g.Covers = r.Token, r.Host, holder, end, nil
	if g != h {
		g.Covers = []string{h.key}
		if ok, err := s.write(ctx, g, g.Row); !ok || err != nil {
			return false, err
		}
		h.Token, h.Waits = r.Token, []ref{{g.key, r.Token}}
	}
	h.Row = end
	if h.uses(g, now) {
		h.BoundTo = max(h.BoundTo, end)
	}
	ok, err := s.write(ctx, h, p.row)
	if !ok {
		if g == h {
			return false, err
		}
		_, undo := s.update(ctx, g.key, func(g *record) bool { // the caller never got it
			is := g.Busy == r.Host && g.Token == r.Token
			if is {
				g.Busy, g.Holder, g.Covers, g.Was, g.Then = "", "", nil, "", 0
			}
			return is
		})
		return false, firstOf(err, undo)
	}
	if err != nil {
		return true, err
	}
	for _, lost := range p.lost {
		if err := s.propagate(ctx, lost); err != nil {
			return true, err
		}
	}
	return true, nil
}

// uses reports whether a lease of g extends the binding of its host: Bind has answered no other group.
func (r *record) uses(g *versioned, now int64) bool {
	return r.Bound == g.name() && r.BoundTo > now && r.Answered == ""
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// leased reads a host and the record that is busy for it under a token. They are the same pointer if
// that is the host's own.
func (s *Store) leased(ctx context.Context, host string, token uint64, now int64) (h, g *versioned, err error) {
	h, err = s.read(ctx, hostKey(host))
	if err != nil {
		return nil, nil, err
	}
	if !h.Added {
		return nil, nil, unknown(host)
	}
	if h.isLeased(host, token, now) {
		return h, h, nil
	}
	for _, w := range h.Waits {
		if w.Token != token || h.Token != token {
			continue
		}
		if g, err = s.read(ctx, w.Key); err != nil || g.isLeased(host, token, now) {
			return h, g, err
		}
	}
	return nil, nil, fmt.Errorf("%w: host %s, token %d", reservation.ErrStale, host, token)
}

func (c *versioned) isLeased(host string, token uint64, now int64) bool {
	return c.Busy == host && c.Token == token && c.End > now
}

// release ends a lease.
func (s *Store) release(ctx context.Context, host string, token uint64, next, now int64) error {
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return err
		}
		_, g, err := s.leased(ctx, host, token, now)
		if err != nil {
			return err
		}
		row := g.Row
		over := s.end(g, next)
		if g.key == hostKey(host) {
			g.Row = max(next, g.Next)
		}
		if ok, err := s.write(ctx, g, row); err != nil {
			return err
		} else if !ok {
			continue
		}
		if err := s.propagate(ctx, over); err != nil {
			return err
		}
		return s.wake(ctx, g, host)
	}
}

// wake moves the queue row of the next host of an alias to the time at which the alias is free. The
// other hosts follow after that one, or when the lease that they waited for would have ended.
func (s *Store) wake(ctx context.Context, g *versioned, host string) error {
	if !isAlias(g.key) || len(g.Hosts) < 2 {
		return nil
	}
	i, _ := slices.BinarySearch(g.Hosts, host)
	h, err := s.read(ctx, hostKey(g.Hosts[(i+1)%len(g.Hosts)]))
	if err != nil || !h.Added || h.Row <= g.Next {
		return err
	}
	if at := max(h.Due, h.Next, g.Next); at < h.Row {
		return s.requeue(ctx, h, at)
	}
	return nil
}

// extend extends a lease, and the binding of its host to the leased group.
func (s *Store) extend(ctx context.Context, c reservation.Call, now int64) (end int64, err error) {
	end = now + c.Lease.Milliseconds()
	until := s.passed(end, now)
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return 0, err
		}
		h, g, err := s.leased(ctx, c.Host, c.Token, now)
		if err != nil {
			return 0, err
		}
		bound := func(h *record) bool { return h.uses(g, now) && h.BoundTo < until }
		binds := bound(&h.record)
		if g.End = until; binds && g == h {
			g.BoundTo = until
		}
		if ok, err := s.write(ctx, g, g.Row); err != nil {
			return 0, err
		} else if !ok {
			continue
		}
		if binds && g != h {
			_, err = s.update(ctx, h.key, func(h *record) bool {
				is := bound(h)
				if is {
					h.BoundTo = until
				}
				return is
			})
		}
		return end, err
	}
}

// ReserveNextHost implements [reservation.Store.ReserveNextHost].
func (s *Store) ReserveNextHost(ctx context.Context, lease time.Duration, most int,
	holder string) (list []reservation.Reservation, err error) {
	if _, err := reservation.LeaseMillis(lease); err != nil {
		return nil, err
	}
	if err := reservation.CheckHolder(holder); err != nil {
		return nil, err
	}
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("reservations: the clock: %w", err)
	}
	most = min(max(most, 1), reservation.MaxReserve)
	for len(list) < most {
		got, found, rowErr := s.nextRows(ctx, most-len(list), now,
			reservation.Call{Lease: lease, Holder: holder})
		list, err = append(list, got...), rowErr
		if !found || err != nil {
			break
		}
	}
	switch {
	case len(list) > 0:
		return list, nil // despite the error of another host, these are leased
	case err != nil:
		return nil, err
	}
	return nil, reservation.ErrNotNow
}

// nextRows serves up to most due rows, and reports whether there were any.
func (s *Store) nextRows(ctx context.Context, most int, now int64,
	c reservation.Call) (list []reservation.Reservation, found bool, err error) {
	rows, err := s.takeRows(ctx, most, now)
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	defer s.freeRows(rows)
	got, errs := make([]*reservation.Reservation, len(rows)), make([]error, len(rows))
	s.together(len(rows), func(i int) { got[i], errs[i] = s.serveRow(ctx, rows[i], now, c) })
	for _, r := range got {
		if r != nil {
			list = append(list, *r)
		}
	}
	return list, true, firstOf(errs...)
}

// takeRows finds the first due rows and marks them as in use. It passes over rows that another call
// of this process uses, or used when they were scanned, because all calls would meet at the first
// row, or find it gone.
func (s *Store) takeRows(ctx context.Context, most int, now int64) (rows []string, err error) {
	for from := "q"; len(rows) < most; {
		others := s.copyRowsInUse()
		found, err := s.cfg.KV.Scan(ctx, from, rowKey(now+1, ""), min(most+2*len(others), page))
		if err != nil {
			s.freeRows(rows)
			return nil, fmt.Errorf("reservations: scan the queue: %w", err)
		}
		if len(found) == 0 {
			break
		}
		rows = s.markRows(rows, found, others, most)
		from = found[len(found)-1].Key + "\x00"
	}
	return rows, nil
}

func (s *Store) copyRowsInUse() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.rowsInUse)
}

func (s *Store) markRows(rows []string, found []Pair, others map[string]bool, most int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range found {
		if len(rows) < most && !others[row.Key] && !s.rowsInUse[row.Key] {
			s.rowsInUse[row.Key] = true
			rows = append(rows, row.Key)
		}
	}
	return rows
}

func (s *Store) freeRows(rows []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		delete(s.rowsInUse, row)
	}
}

// serveRow leases the host of a due row. Otherwise it deletes the row, or moves it to the time at
// which the host may be leased.
func (s *Store) serveRow(ctx context.Context, row string, now int64,
	c reservation.Call) (*reservation.Reservation, error) {
	var at int64
	if _, err := fmt.Sscanf(row, "q%015d%s", &at, &c.Host); err != nil {
		return nil, fmt.Errorf("reservations: %q is no row of the queue: %w; is the prefix another's, too?",
			row, err)
	}
	h, err := s.read(ctx, hostKey(c.Host))
	if err != nil {
		return nil, err
	}
	if !h.Added || h.Row != at {
		return nil, s.unqueue(ctx, at, c.Host)
	}
	r, err := s.reserve(ctx, c, h, now)
	switch wait := (notNow{}); {
	case err == nil:
		return &r, nil
	case asNotNow(err, &wait):
		return nil, s.moveRow(ctx, c.Host, at, wait.until)
	}
	return nil, err
}

// moveRow moves a row to a later time.
func (s *Store) moveRow(ctx context.Context, host string, from, to int64) error {
	h, err := s.update(ctx, hostKey(host), func(h *record) bool {
		is := h.Row == from && h.Added
		if is {
			h.Row = to
		}
		return is
	})
	if err != nil {
		return err
	}
	if h.Row == to {
		return nil
	}
	return s.unqueue(ctx, from, host)
}
