package memory

import (
	"context"

	"urlserver/reservation"
)

// Stats implements [reservation.Store.Stats].
func (s *Store) Stats(ctx context.Context) (reservation.Stats, error) {
	if err := s.Sweep(ctx); err != nil {
		return reservation.Stats{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	ready := 0
	for g := s.ready.head; g != nil; g = g.nextReady {
		ready += g.members.due(now, 0)
	}
	busy := s.leases.Len()
	return reservation.Stats{
		Hosts: uint64(s.hosts), Waiting: uint64(s.hosts - ready - busy), Ready: uint64(ready),
		Busy:    uint64(busy),
		Aliases: uint64(s.aliases),
	}, nil
}

// due counts the members that are due in the subtree of the heap whose root is at i.
func (m members) due(now int64, i int) int {
	if i >= len(m) || m[i].key() > now {
		return 0
	}
	return 1 + m.due(now, 2*i+1) + m.due(now, 2*i+2)
}

// Explain implements [reservation.Store.Explain].
func (s *Store) Explain(_ context.Context, host string) (reservation.Explanation, error) {
	host, err := reservation.Host(host)
	if err != nil {
		return reservation.Explanation{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.enterLocked()
	x := reservation.Explanation{Host: host, Group: host, State: reservation.Unknown,
		Rule: reservation.RuleUnknown}
	h := s.records[host]
	if h == nil {
		return x, nil
	}
	s.expireAllLocked(h, now)
	g := s.groupLocked(h, now)
	s.expireAllLocked(g, now)
	if x.Group = g.name; !h.added {
		return x, nil
	}
	if h.lock != nil {
		return x.As(reservation.Busy, h.lock.end, reservation.RuleBusy, h.lock.holder), nil
	}
	var last *lock
	for _, r := range []*record{h, g} {
		for _, l := range r.locks {
			if last == nil || l.end > last.end {
				last = l
			}
		}
	}
	if last != nil {
		return x.As(reservation.Waiting, last.end, reservation.RuleGroupBusy, last.holder), nil
	}
	return x.Idle(now, h.due, max(h.next, g.next)), nil
}
