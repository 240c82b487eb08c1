package memory

import (
	"context"
	"fmt"
	"time"

	"urlserver/reservation"
)

// Do implements [reservation.Store.Do].
func (s *Store) Do(_ context.Context, calls []reservation.Call) []reservation.Answer {
	answers := make([]reservation.Answer, len(calls))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	for i, c := range calls {
		c, err := c.Checked()
		if err != nil {
			answers[i].Err = err
			continue
		}
		answers[i] = s.doLocked(c, now)
	}
	return answers
}

func (s *Store) doLocked(c reservation.Call, now int64) (a reservation.Answer) {
	switch c.Verb {
	case reservation.AddHost:
		a.Added, a.Err = s.addLocked(c, now)
	case reservation.DeleteHost:
		a.Err = s.deleteLocked(c, now)
	case reservation.TryReserve:
		return s.tryLocked(c, now)
	case reservation.ExtendHost:
		a.LeaseEnd, a.Err = s.extendLocked(c, now)
	case reservation.ReleaseHost:
		l, err := s.leasedLocked(c.Host, c.Token, now)
		if err == nil {
			s.unlockLocked(l, c.Moment(now), now)
		}
		a.Err = err
	}
	return a
}

func (s *Store) addLocked(c reservation.Call, now int64) (added bool, err error) {
	if r := s.records[c.Host]; r != nil && len(r.hosts) > 0 {
		return false, fmt.Errorf("%w host %s: an alias has this name", reservation.ErrInvalid, c.Host)
	}
	h, due := s.recordLocked(c.Host), c.Moment(now)
	if h.added {
		if due >= h.due {
			return false, nil
		}
		h.due = due
	} else {
		h.added, h.due, added = true, due, true
		s.forget.Remove(h.id)
		s.hosts++
	}
	s.rejoinLocked(h, now)
	return added, nil
}

func (s *Store) deleteLocked(c reservation.Call, now int64) error {
	h, next := s.records[c.Host], c.Moment(now)
	if h == nil || !h.added {
		return unknown(c.Host)
	}
	s.expireAllLocked(h, now)
	switch {
	case h.lock != nil || c.Token != 0:
		l, err := s.leasedLocked(c.Host, c.Token, now)
		if err != nil {
			return err
		}
		s.unlockLocked(l, next, now)
	case next > now:
		s.deferLocked(h, next, now)
		s.deferLocked(s.groupLocked(h, now), next, now)
	}
	h.added = false
	s.hosts--
	s.rejoinLocked(h, now)
	s.dropLocked(h, now)
	return nil
}

func (s *Store) extendLocked(c reservation.Call, now int64) (time.Time, error) {
	l, err := s.leasedLocked(c.Host, c.Token, now)
	if err != nil {
		return time.Time{}, err
	}
	l.end = now + c.Lease.Milliseconds()
	s.leases.Set(l.id, time.Duration(l.end))
	l.prolongBinding()
	return time.UnixMilli(l.end), nil
}
