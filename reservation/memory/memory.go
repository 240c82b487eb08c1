// Package memory is a reservation store in RAM, for the crawlers of one process or of one host
// reservation service.
package memory

import (
	"context"
	"sync"
	"time"

	"urlserver/internal/container/timeheap"
	"urlserver/reservation"
)

// batch limits the housekeeping of one call, so that no caller waits long.
const batch = 64

// Config is the configuration of a Store.
type Config struct {
	Penalty time.Duration    // how long a group is left alone after a lost lease
	Now     func() time.Time // nil: time.Now
}

// Store is a reservation.Store in RAM. Create it with New.
type Store struct {
	reservation.SingleCalls
	penalty int64
	now     func() time.Time
	start   time.Time // the clock counts from here, by now's monotonic clock

	mu      sync.Mutex // guards all below; held for memory work only
	records map[string]*record
	byID    []*record // id → record
	freeIDs []uint32
	locks   []*lock // id → lock
	freed   []uint32
	waiting timeheap.Heap // groups by the time at which they are ready, in ms
	ready   list          // groups that can be leased, longest due first
	leases  timeheap.Heap // live leases by end
	forget  timeheap.Heap // records to drop later
	bound   timeheap.Heap // bound hosts, by a time that is not after the end of their binding
	token   uint64
	clock   int64 // the latest time seen; it never goes back
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
	s.start = s.now()
	s.token = uint64(s.start.UnixMicro()) // no token of a process before this one is given again
	s.SingleCalls.Batcher = s
	return s
}

// enterLocked reads the clock and does a limited amount of housekeeping. Each call of the store
// begins with it.
func (s *Store) enterLocked() (now int64) {
	s.readClockLocked()
	s.housekeepLocked(s.clock, batch)
	return s.clock
}

// readClockLocked sets the clock. The machine's time of day counts at the start only: when somebody sets it,
// leases and next-request times stay as far away as they were.
func (s *Store) readClockLocked() {
	s.clock = max(s.clock, s.start.Add(s.now().Sub(s.start)).UnixMilli())
}

// housekeepLocked ends leases and bindings whose time has passed, queues groups that are ready, and
// drops records. It handles at most most of each, and reports whether more are left.
func (s *Store) housekeepLocked(now int64, most int) (more bool) {
	expired := func(id uint32) { s.expireLocked(s.locks[id], now) }
	unbind := func(id uint32) { s.unbindLocked(s.byID[id], now) }
	queue := func(id uint32) {
		s.waiting.Remove(id)
		s.ready.push(s.byID[id])
	}
	drop := func(id uint32) {
		s.forget.Remove(id)
		s.dropLocked(s.byID[id], now)
	}
	return popDue(&s.leases, now, most, expired) || popDue(&s.bound, now, most, unbind) ||
		popDue(&s.waiting, now, most, queue) || popDue(&s.forget, now, most, drop)
}

// popDue calls do with each element of a heap that is due, at most most times. do removes the
// element from the heap or moves it. popDue reports whether more elements are due.
func popDue(heap *timeheap.Heap, now int64, most int, do func(id uint32)) (more bool) {
	for i := 0; ; i++ {
		id, due, ok := heap.Min()
		if !ok || int64(due) > now {
			return false
		}
		if i == most {
			return true
		}
		do(id)
	}
}

// recordLocked returns the record of a name. It creates the record if there is none.
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

// dropLocked drops a record that has no information left. Otherwise it schedules another attempt,
// if only time is missing.
func (s *Store) dropLocked(r *record, now int64) {
	if s.byID[r.id] != r {
		return // dropped together with its own binding: it was bound to itself
	}
	if r.forgettable(now) {
		s.forget.Remove(r.id)
		s.byID[r.id] = nil
		s.freeIDs = append(s.freeIDs, r.id)
		delete(s.records, r.name)
		s.bindToLocked(r, nil, now)
		return
	}
	if later := max(r.next, r.boundUntil); !r.added && later > now {
		s.forget.Set(r.id, time.Duration(later))
	}
}

// bindToLocked binds h to another group, or to none if group is nil. The caller then calls
// rejoinLocked, and dropLocked if h may have no information left.
func (s *Store) bindToLocked(h, group *record, now int64) {
	s.leaveLocked(h, now)
	was := h.bound
	if h.bound, h.boundUntil = group, 0; group != nil {
		group.bounds++
	} else {
		s.bound.Remove(h.id)
	}
	if was != nil {
		if was.bounds--; was != h {
			s.dropLocked(was, now)
		}
	}
}

// unbindLocked ends a binding that has expired. Otherwise it schedules the next check.
func (s *Store) unbindLocked(h *record, now int64) {
	if h.boundUntil > now {
		s.bound.Set(h.id, time.Duration(h.boundUntil))
		return
	}
	s.bindToLocked(h, nil, now)
	s.rejoinLocked(h, now)
	s.dropLocked(h, now)
}

// groupLocked returns the current group of h.
func (s *Store) groupLocked(h *record, now int64) *record {
	if h.alias != nil {
		return h.alias
	}
	if h.bound != nil && h.boundUntil > now {
		if h.bound.alias != nil {
			return h.bound.alias
		}
		return h.bound
	}
	return h
}

// leaveLocked removes h from the members of its group.
func (s *Store) leaveLocked(h *record, now int64) {
	if was := h.group; was != nil {
		h.leave()
		s.queueLocked(was, now)
	}
}

// deferLocked makes r unavailable until next.
func (s *Store) deferLocked(r *record, next, now int64) {
	r.next = max(r.next, next)
	s.rejoinLocked(r, now)
	s.queueLocked(r, now)
}

// rejoinLocked makes an added host without lease a member of its current group.
func (s *Store) rejoinLocked(h *record, now int64) {
	var group *record
	if h.added && len(h.locks) == 0 {
		group = s.groupLocked(h, now)
	}
	if h.group != group {
		s.leaveLocked(h, now)
	} else if group != nil {
		h.leave()
	}
	if group != nil {
		h.join(group)
		s.queueLocked(group, now)
	}
}

// queueLocked puts a group into the list of ready groups or into the heap of waiting ones.
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
		s.waiting.Set(g.id, time.Duration(t)) // ms, although the type is Duration
	}
}

func (s *Store) unqueueLocked(g *record) {
	s.waiting.Remove(g.id)
	if g.ready {
		s.ready.remove(g)
	}
}

func unknown(host string) error { return hostError{reservation.ErrUnknown, host} }

// hostError is an error about one host. It builds its text only on demand, because refused calls
// are as frequent as leases.
type hostError struct {
	kind error
	host string
}

func (r hostError) Error() string { return r.kind.Error() + ": host " + r.host }
func (r hostError) Unwrap() error { return r.kind }

// Sweep implements [reservation.Store.Sweep].
func (s *Store) Sweep(context.Context) error {
	for more := true; more; {
		s.mu.Lock()
		s.readClockLocked()
		more = s.housekeepLocked(s.clock, batch)
		s.mu.Unlock()
	}
	return nil
}
