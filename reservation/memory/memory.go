// Package memory keeps reservations in RAM, for the crawlers of one process or of one host reservation service.
package memory

import (
	"context"
	"sync"
	"time"

	"urlserver/internal/container/timeheap"
	"urlserver/reservation"
)

// batch bounds the housekeeping that one call does for others, so that none waits long.
const batch = 64

// Config is what a Store works with.
type Config struct {
	Penalty time.Duration    // a lost lease keeps its group from being asked so long
	Now     func() time.Time // nil: time.Now
}

// Store is a reservation.Store in RAM. Use New.
type Store struct {
	reservation.Verbs
	penalty int64
	now     func() time.Time

	mu      sync.Mutex // guards all below; held for memory work only
	records map[string]*record
	byID    []*record // id → record
	freeIDs []uint32
	locks   []*lock // id → lock
	freed   []uint32
	waiting timeheap.Heap // groups by time, in ms
	ready   list          // groups that may be served, longest due first
	leases  timeheap.Heap // locks by end
	forget  timeheap.Heap // records that may be forgotten later
	bound   timeheap.Heap // hosts that are bound, by a time no later than their bindings' ends
	token   uint64
	clock   int64 // the latest time seen: it does not go back
	hosts   int
	aliases int
}

var _ reservation.Store = (*Store)(nil)

// New returns an empty store.
func New(cfg Config) *Store {
	s := &Store{penalty: cfg.Penalty.Milliseconds(), now: cfg.Now, records: map[string]*record{}}
	if s.now == nil {
		s.now = time.Now
	}
	s.Verbs.Doer = s
	return s
}

// enterLocked reads the clock and does a bounded part of what time has brought.
func (s *Store) enterLocked() (now int64) {
	s.clock = max(s.clock, s.now().UnixMilli())
	s.housekeepLocked(s.clock, batch)
	return s.clock
}

// housekeepLocked ends lost leases, moves what is due, and forgets, at most so many of each.
func (s *Store) housekeepLocked(now int64, most int) (more bool) {
	for i := 0; ; i++ {
		id, end, ok := s.leases.Min()
		if !ok || int64(end) > now {
			break
		}
		if i == most {
			return true
		}
		s.lostLocked(s.locks[id], now)
	}
	for i := 0; ; i++ {
		id, end, ok := s.bound.Min()
		if !ok || int64(end) > now {
			break
		}
		if i == most {
			return true
		}
		s.unbindLocked(s.byID[id], now)
	}
	for i := 0; ; i++ {
		id, due, ok := s.waiting.Min()
		if !ok || int64(due) > now {
			break
		}
		if i == most {
			return true
		}
		s.waiting.Remove(id)
		s.ready.push(s.byID[id])
	}
	for i := 0; ; i++ {
		id, due, ok := s.forget.Min()
		if !ok || int64(due) > now {
			return false
		}
		if i == most {
			return true
		}
		s.forget.Remove(id)
		s.dropLocked(s.byID[id], now)
	}
}

// recordLocked returns the record of a name, a new one if need be.
func (s *Store) recordLocked(name string) *record {
	if r := s.records[name]; r != nil {
		return r
	}
	r := &record{name: name}
	if n := len(s.freeIDs); n > 0 {
		r.id, s.freeIDs = s.freeIDs[n-1], s.freeIDs[:n-1]
		s.byID[r.id] = r
	} else {
		r.id = uint32(len(s.byID))
		s.byID = append(s.byID, r)
	}
	s.records[name] = r
	return r
}

// dropLocked forgets a record if nothing is lost with it, or sees to it later.
func (s *Store) dropLocked(r *record, now int64) {
	if s.byID[r.id] != r {
		return // it was dropped with what it was bound to: itself
	}
	if r.forgettable(now) {
		s.forget.Remove(r.id)
		s.byID[r.id] = nil
		s.freeIDs = append(s.freeIDs, r.id)
		delete(s.records, r.name)
		s.bindToLocked(r, nil, now)
		return
	}
	if later := max(r.next, r.boundTo); !r.added && later > now {
		s.forget.Set(r.id, time.Duration(later))
	}
}

// bindToLocked binds h to another group, or to none; homeLocked has to follow.
func (s *Store) bindToLocked(h, group *record, now int64) {
	s.awayLocked(h, now)
	was := h.bound
	if h.bound, h.boundTo = group, 0; group != nil {
		group.bounds++
	} else {
		s.bound.Remove(h.id)
	}
	if was != nil {
		was.bounds--
		s.dropLocked(was, now)
	}
}

// unbindLocked ends a binding if its time has come, or looks again when it has.
func (s *Store) unbindLocked(h *record, now int64) {
	if h.boundTo > now {
		s.bound.Set(h.id, time.Duration(h.boundTo))
		return
	}
	s.bindToLocked(h, nil, now)
	s.homeLocked(h, now)
	s.dropLocked(h, now)
}

// groupLocked is the group that h stands in now.
func (s *Store) groupLocked(h *record, now int64) *record {
	if h.alias != nil {
		return h.alias
	}
	if h.bound != nil && h.boundTo > now {
		if h.bound.alias != nil {
			return h.bound.alias
		}
		return h.bound
	}
	return h
}

// awayLocked has h be no member of any group.
func (s *Store) awayLocked(h *record, now int64) {
	if was := h.group; was != nil {
		h.leave()
		s.queueLocked(was, now)
	}
}

// raiseLocked has nobody get r before next.
func (s *Store) raiseLocked(r *record, next, now int64) {
	r.next = max(r.next, next)
	s.homeLocked(r, now)
	s.queueLocked(r, now)
}

// homeLocked makes an added host that is free a member of the group it stands in now.
func (s *Store) homeLocked(h *record, now int64) {
	var group *record
	if h.added && len(h.locks) == 0 {
		group = s.groupLocked(h, now)
	}
	if h.group != group {
		s.awayLocked(h, now)
	} else if group != nil {
		h.leave()
	}
	if group != nil {
		h.join(group)
		s.queueLocked(group, now)
	}
}

// queueLocked puts a group where its time wants it.
func (s *Store) queueLocked(g *record, now int64) {
	t := g.time()
	if t <= now {
		s.waiting.Remove(g.id)
		if !g.ready {
			s.ready.push(g)
		}
		return
	}
	s.unqueueLocked(g)
	if len(g.members) > 0 && len(g.locks) == 0 {
		s.waiting.Set(g.id, time.Duration(t)) // ms, whatever Duration says
	}
}

func (s *Store) unqueueLocked(g *record) {
	s.waiting.Remove(g.id)
	if g.ready {
		s.ready.remove(g)
	}
}

func unknown(host string) error { return refusal{reservation.ErrUnknown, host} }

// refusal is an error that concerns a host. It is put into words only where it is read: refusing is as common as reserving.
type refusal struct {
	kind error
	host string
}

func (r refusal) Error() string { return r.kind.Error() + ": host " + r.host }
func (r refusal) Unwrap() error { return r.kind }

// Sweep is [reservation.Store.Sweep].
func (s *Store) Sweep(context.Context) error {
	for more := true; more; {
		s.mu.Lock()
		s.clock = max(s.clock, s.now().UnixMilli())
		more = s.housekeepLocked(s.clock, batch)
		s.mu.Unlock()
	}
	return nil
}
