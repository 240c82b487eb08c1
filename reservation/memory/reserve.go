package memory

import (
	"context"
	"fmt"
	"time"

	"urlserver/reservation"
)

// lockLocked leases h, a member of g, to holder.
func (s *Store) lockLocked(h, g *record, now, lease int64, holder string) reservation.Reservation {
	s.token++
	l := &lock{token: s.token, holder: holder, host: h, group: g, end: now + lease}
	if n := len(s.freed); n > 0 {
		l.id, s.freed = s.freed[n-1], s.freed[:n-1]
		s.locks[l.id] = l
	} else {
		l.id = uint32(len(s.locks))
		s.locks = append(s.locks, l)
	}
	l.covers = l.few[:0]
	h.lock = l
	h.leave()
	s.coverLocked(l, h, now)
	s.coverLocked(l, g, now)
	s.leases.Set(l.id, time.Duration(l.end))
	l.prolongBinding()
	return reservation.Reservation{Host: h.name, Group: g.name, Token: l.token,
		LeaseEnd: time.UnixMilli(l.end)}
}

// prolongBinding extends the binding that a lease uses, unless Bind has answered another group.
func (l *lock) prolongBinding() {
	if h := l.host; h.bound != nil && h.bound == l.group && h.answered == l.group.name {
		h.boundUntil = max(h.boundUntil, l.end)
	}
}

// coverLocked makes r unavailable while l lives.
func (s *Store) coverLocked(l *lock, r *record, now int64) {
	if r.covered(l) {
		return
	}
	if r.locks == nil {
		r.locks = r.first[:0]
	}
	r.locks = append(r.locks, l)
	l.covers = append(l.covers, r)
	if r.group != nil {
		s.rejoinLocked(r, now)
	}
	s.unqueueLocked(r)
}

// unlockLocked ends a lease. Nobody can lease the names that it covered before next.
func (s *Store) unlockLocked(l *lock, next, now int64) {
	s.leases.Remove(l.id)
	s.locks[l.id] = nil
	s.freed = append(s.freed, l.id)
	l.host.lock, l.host.due = nil, next
	for _, r := range l.covers {
		r.next = max(r.next, next)
		for i, have := range r.locks {
			if have == l {
				r.locks[i] = r.locks[len(r.locks)-1]
				r.locks = r.locks[:len(r.locks)-1]
				break
			}
		}
	}
	for _, r := range l.covers {
		if r.added {
			s.rejoinLocked(r, now)
		}
		s.queueLocked(r, now)
		if !r.added {
			s.dropLocked(r, now)
		}
	}
}

// expireLocked ends a lost lease. The host is due as soon as the penalty has passed.
func (s *Store) expireLocked(l *lock, now int64) { s.unlockLocked(l, l.end+s.penalty, now) }

// ReserveNextHost implements [reservation.Store.ReserveNextHost].
func (s *Store) ReserveNextHost(_ context.Context, lease time.Duration, most int,
	holder string) ([]reservation.Reservation, error) {
	ms, err := reservation.LeaseMillis(lease)
	if err == nil {
		err = reservation.CheckHolder(holder)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	most = min(max(most, 1), reservation.MaxReserve)
	var list []reservation.Reservation
	for s.ready.head != nil && len(list) < most {
		g := s.ready.head
		h := g.members[0]
		if home := s.groupLocked(h, now); home != g { // its binding has ended
			s.rejoinLocked(h, now)
			continue
		}
		list = append(list, s.lockLocked(h, g, now, ms, holder))
	}
	if list == nil {
		return nil, reservation.ErrNotNow
	}
	return list, nil
}

func (s *Store) tryLocked(c reservation.Call, now int64) (a reservation.Answer) {
	h := s.records[c.Host]
	if h == nil || !h.added {
		a.Err = unknown(c.Host)
		return a
	}
	g := s.groupLocked(h, now)
	s.expireAllLocked(h, now)
	s.expireAllLocked(g, now)
	if h.group != g {
		s.rejoinLocked(h, now)
	}
	if len(h.locks) > 0 || len(g.locks) > 0 || max(h.key(), g.next) > now {
		a.Err = hostError{reservation.ErrNotNow, c.Host}
		return a
	}
	a.Reservation = s.lockLocked(h, g, now, c.Lease.Milliseconds(), c.Holder)
	return a
}

// expireAllLocked ends the leases that cover r and whose time has passed.
func (s *Store) expireAllLocked(r *record, now int64) {
	for i := 0; i < len(r.locks); {
		if l := r.locks[i]; l.end <= now {
			s.expireLocked(l, now)
			i = 0
			continue
		}
		i++
	}
}

// leasedLocked returns the live lease of a host with this token.
func (s *Store) leasedLocked(host string, token uint64, now int64) (*lock, error) {
	h := s.records[host]
	if h == nil || !h.added {
		return nil, unknown(host)
	}
	if h.lock == nil || h.lock.token != token || h.lock.end <= now {
		return nil, fmt.Errorf("%w: host %s, token %d", reservation.ErrStale, host, token)
	}
	return h.lock, nil
}
