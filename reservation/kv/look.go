package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"

	"urlserver/reservation"
)

const page = 1000 // keys of one scan

// each calls visit for all records whose keys begin with a letter, several at a time.
func (s *Store) each(ctx context.Context, letter string, visit func(c *versioned) error) error {
	before := string(letter[0] + 1)
	for from := letter; ; {
		found, err := s.cfg.KV.Scan(ctx, from, before, page)
		if err != nil {
			return fmt.Errorf("reservations: scan: %w", err)
		}
		errs := make([]error, len(found))
		s.together(len(found), func(i int) {
			c, err := parse(found[i].Key, found[i].Value)
			if err == nil {
				err = visit(c)
			}
			errs[i] = err
		})
		if err := firstOf(errs...); err != nil {
			return err
		}
		if len(found) < page {
			return nil
		}
		from = found[len(found)-1].Key + "\x00"
	}
}

// Stats implements [reservation.Store.Stats]. It reads every host.
func (s *Store) Stats(ctx context.Context) (out reservation.Stats, err error) {
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return out, fmt.Errorf("reservations: the clock: %w", err)
	}
	var mu sync.Mutex // guards out
	out.Repaired = s.repaired.Load()
	err = s.each(ctx, "h", func(h *versioned) error {
		x, err := s.explain(ctx, h, now)
		mu.Lock()
		defer mu.Unlock()
		switch x.State {
		case reservation.Busy:
			out.Busy++
		case reservation.Ready:
			out.Ready++
		case reservation.Waiting:
			out.Waiting++
		}
		return err
	})
	if err != nil {
		return reservation.Stats{}, err
	}
	out.Hosts = out.Busy + out.Ready + out.Waiting
	return out, s.each(ctx, "a", func(a *versioned) error {
		mu.Lock()
		defer mu.Unlock()
		if len(a.Hosts) > 0 {
			out.Aliases++
		}
		return nil
	})
}

// Explain implements [reservation.Store.Explain].
func (s *Store) Explain(ctx context.Context, host string) (x reservation.Explanation, err error) {
	if host, err = reservation.Host(host); err != nil {
		return x, err
	}
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return x, fmt.Errorf("reservations: the clock: %w", err)
	}
	h, err := s.read(ctx, hostKey(host))
	if err != nil {
		return x, err
	}
	return s.explain(ctx, h, now)
}

func (s *Store) explain(ctx context.Context, h *versioned, now int64) (x reservation.Explanation, err error) {
	host := h.name()
	p, err := s.readBoth(ctx, host, h, now)
	if err != nil {
		return x, err
	}
	x = reservation.Explanation{Host: host, Group: p.g.name(), State: reservation.Unknown,
		Rule: reservation.RuleUnknown}
	if !p.h.Added {
		return x, nil
	}
	until, holder := int64(0), ""
	for _, c := range []*versioned{p.h, p.g} {
		end, who, err := s.busyUntil(ctx, c)
		if err != nil {
			return x, err
		}
		if end > until {
			until, holder = end, who
		}
	}
	if _, held, err := s.leased(ctx, host, p.h.Token, now); err == nil {
		return x.As(reservation.Busy, held.End, reservation.RuleBusy, held.Holder), nil
	}
	if until > 0 {
		return x.As(reservation.Waiting, until, reservation.RuleGroupBusy, holder), nil
	}
	return x.Idle(now, p.h.Due, max(p.h.Next, p.g.Next)), nil
}

// janitorKey is the key of the last sweep: which process, and when.
const janitorKey = "j"

type janitor struct {
	ID string `json:"id"`
	At int64  `json:"at"`
}

// isJanitor reports whether this process sweeps now, and records that. It does not sweep if another
// process began a sweep less than three quarters of a period ago. The period is the time between
// this process's last two calls of Sweep. So all processes together sweep about once a period, and
// if one dies another follows a period later.
func (s *Store) isJanitor(ctx context.Context, now int64) (bool, error) {
	s.mu.Lock()
	period := now - s.swept
	if s.swept == 0 {
		period = 0
	}
	s.swept = now
	s.mu.Unlock()
	raw, err := s.cfg.KV.Get(ctx, janitorKey)
	if err != nil {
		return false, fmt.Errorf("reservations: get %s: %w", janitorKey, err)
	}
	var last janitor
	if raw != nil {
		if err := json.Unmarshal(raw, &last); err != nil {
			return false, fmt.Errorf("reservations: %s is no janitor: %w", janitorKey, err)
		}
	}
	if last.ID != s.cfg.ID && now-last.At < period*3/4 {
		return false, nil
	}
	to, err := json.Marshal(janitor{s.cfg.ID, now})
	if err != nil {
		return false, err
	}
	if string(to) == string(raw) { // the clock stands still
		return true, nil
	}
	ok, err := s.cfg.KV.CompareAndSwap(ctx, janitorKey, raw, to)
	if err != nil {
		return false, fmt.Errorf("reservations: swap %s: %w", janitorKey, err)
	}
	return ok, nil
}

// Sweep implements [reservation.Store.Sweep]. It reads every record unless another process does.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.finishChange(ctx, anyChange); err != nil {
		return err
	}
	now, err := s.cfg.Now(ctx)
	if err != nil {
		return fmt.Errorf("reservations: the clock: %w", err)
	}
	if is, err := s.isJanitor(ctx, now); err != nil || !is {
		return err
	}
	change, _, err := s.readChange(ctx)
	if err != nil {
		return err
	}
	last := change.ID // that is over
	if change.Phase != over {
		last--
	}
	for _, letter := range []string{"a", "h"} {
		if err := s.each(ctx, letter, func(c *versioned) error {
			if err := s.thawLate(ctx, c, last); err != nil {
				return err
			}
			return s.sweep(ctx, c, now)
		}); err != nil {
			return err
		}
	}
	queued, err := s.queued(ctx)
	if err != nil {
		return err
	}
	return s.each(ctx, "h", func(h *versioned) error {
		if !h.Added || queued[hashOf(rowKey(h.Row, h.name()))] && !early(h, now) {
			return nil
		}
		return s.mend(ctx, h.key, now) // reads the record again
	})
}

var hashSeed = maphash.MakeSeed()

func hashOf(row string) uint64 { return maphash.String(hashSeed, row) }

// queued returns the hashes of all queue rows. Two rows with one hash are too rare to matter.
func (s *Store) queued(ctx context.Context) (map[uint64]bool, error) {
	rows := map[uint64]bool{}
	for from := "q"; ; {
		found, err := s.cfg.KV.Scan(ctx, from, "r", page)
		if err != nil {
			return nil, fmt.Errorf("reservations: scan the queue: %w", err)
		}
		for _, row := range found {
			rows[hashOf(row.Key)] = true
		}
		if len(found) < page {
			return rows, nil
		}
		from = found[len(found)-1].Key + "\x00"
	}
}

// sweep ends a lost lease of c. It reads the record again if another process was faster.
func (s *Store) sweep(ctx context.Context, c *versioned, now int64) (err error) {
	for try := 0; ; try++ {
		if err := s.pause(ctx, try); err != nil {
			return err
		}
		row, busy, waits := c.Row, c.Busy, len(c.Waits)
		lost, err := s.expire(ctx, c, now)
		if err != nil || c.Busy == busy && len(c.Waits) == waits {
			return err
		}
		if c.Added && c.Busy == "" && len(c.Waits) == 0 {
			c.Row = max(c.Due, c.Next)
		}
		if ok, err := s.write(ctx, c, row); err != nil {
			return err
		} else if ok {
			return s.propagate(ctx, lost)
		}
		if c, err = s.read(ctx, c.key); err != nil {
			return err
		}
	}
}

// mend restores the queue row of a host if it is missing or too late.
func (s *Store) mend(ctx context.Context, key string, now int64) error {
	h, err := s.read(ctx, key)
	if err != nil || !h.Added {
		return err
	}
	if early(h, now) {
		return s.requeue(ctx, h, max(h.Due, h.Next, now))
	}
	row := rowKey(h.Row, h.name())
	if found, err := s.get(ctx, row); err != nil || found != nil { // a read needs no write to disk
		return err
	}
	put, err := s.cfg.KV.CompareAndSwap(ctx, row, nil, []byte{'.'})
	if err == nil && put {
		s.repaired.Add(1)
	}
	return err
}

// early reports whether a host can be served before the time of its row.
func early(h *versioned, now int64) bool {
	return h.Row > max(h.Due, h.Next, now) && h.Busy == "" && len(h.Waits) == 0
}
