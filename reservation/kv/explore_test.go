package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"urlserver/reservation"
)

// The walk below drives a few actors, each a short program over a Store, through every order of
// their calls of the KV. One actor may crash before any such call, and time may pass at any of
// these moments. A state is the content of the KV, the answers that each actor has had so far, and
// the time. The walk visits a state once.

const (
	walkStart   = 1_700_000_000_000
	walkLease   = 10_000
	walkPenalty = 1_000
)

var seed = maphash.MakeSeed()

// actor is one of the programs of a scenario. What it does depends on nothing but the answers to
// its calls of the KV and the times that it reads.
type actor struct {
	name string
	do   func(r *actorRun, s *Store)
}

// scenario is the input of a walk.
type scenario struct {
	name    string
	prepare func(t *testing.T, s *Store) // runs alone at the start
	actors  []actor
	ticks   []int64 // how far time jumps, one jump after the other
	hosts   []string
	crashes string // actors that may crash; "": any
	atOnce  string // the actor whose calls nothing interrupts, once it has made the first

	// end checks an end, where hosts are those that were served there; nil: each host must be.
	end func(s *state, served map[string]bool) (fault string)

	// The walk has to find the fault of each of these.
	blind bool                            // the KV swaps without comparing
	lost  func(actor string, c call) bool // a swap is acknowledged and not made
}

// call is a call of the KV.
type call struct {
	op          byte // 'g', 'c' or 's'
	key, before string
	was, to     []byte
	limit       int
}

// answer is what the KV answers to a call.
type answer struct {
	value []byte
	ok    bool
	found []Pair
}

// of makes the call. It returns the KV after the call, and leaves m as it is.
func (c call) of(m *mem) (a answer, after *mem) {
	ctx := context.Background()
	switch c.op {
	case 'g':
		a.value, _ = m.Get(ctx, c.key)
	case 's':
		a.found, _ = m.Scan(ctx, c.key, c.before, c.limit)
	case 'c':
		m = m.clone()
		a.ok, _ = m.CompareAndSwap(ctx, c.key, c.was, c.to)
	}
	return a, m
}

// point is where an actor stands: it has had some answers, and has not made its next call.
type point struct {
	actor  actor
	before *point // the point before the last answer; nil: the actor has had none
	answer answer // the last one
	now    int64  // the time when it came

	did  []func(*state) // what the actor has done since the last answer
	call call           // the next one
	done bool           // there is no next one
	seen uint64         // hash of all answers to the actor, and of the times that it has read
	next map[answered]*point
}

// answered is an answer, by its hash, and when it came.
type answered struct {
	answer uint64
	now    int64
}

// after returns the point after an answer to the actor's call.
func (p *point) after(a answer, now int64) *point {
	key := answered{mix(0, p.call.op, a), now}
	next := p.next[key]
	if next == nil {
		next = &point{actor: p.actor, before: p, answer: a, now: now, next: map[answered]*point{}}
		next.run()
		p.next[key] = next
	}
	return next
}

// run runs the actor from its beginning to the point.
func (p *point) run() {
	r := &actorRun{now: walkStart, to: p}
	for q := p; q.before != nil; q = q.before {
		r.points = append(r.points, q)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s := New(Config{KV: r, ID: p.actor.name, Penalty: walkPenalty * time.Millisecond, Now: r.time})
		s.sleep = func(context.Context, time.Duration) error { return nil } // the walk decides the order
		p.actor.do(r, s)
		p.done = true
	}()
	<-ended
	p.did, p.seen = r.did, r.seen
}

// actorRun is a run of an actor along answers that it has had. It is the actor's KV.
type actorRun struct {
	points []*point // with the answers still to come, the next one last
	to     *point   // where the run ends
	now    int64
	did    []func(*state)
	seen   uint64
}

// ask returns the answer to a call. If there is none yet, the run has come to its end.
func (r *actorRun) ask(c call) answer {
	if len(r.points) == 0 {
		r.to.call = c
		runtime.Goexit() // nothing runs after it, not even error handling
	}
	last := len(r.points) - 1
	p := r.points[last]
	r.points, r.now, r.did = r.points[:last], p.now, nil
	r.seen = mix(r.seen, c.op, p.answer)
	return p.answer
}

// then notes what the actor does to the state.
func (r *actorRun) then(do func(*state)) { r.did = append(r.did, do) }

func (r *actorRun) fault(text string) {
	r.then(func(s *state) { s.faults = append(s.faults, text) })
}

func (r *actorRun) time(context.Context) (int64, error) {
	r.seen = mix(r.seen, 'n', answer{value: binary.LittleEndian.AppendUint64(nil, uint64(r.now))})
	return r.now, nil
}

func (r *actorRun) Get(_ context.Context, key string) ([]byte, error) {
	return slices.Clone(r.ask(call{op: 'g', key: key}).value), nil
}

func (r *actorRun) CompareAndSwap(_ context.Context, key string, was, to []byte) (bool, error) {
	return r.ask(call{op: 'c', key: key, was: slices.Clone(was), to: slices.Clone(to)}).ok, nil
}

func (r *actorRun) Scan(_ context.Context, from, before string, limit int) ([]Pair, error) {
	return slices.Clone(r.ask(call{op: 's', key: from, before: before, limit: limit}).found), nil
}

// mix adds an answer to a hash.
func mix(to uint64, op byte, a answer) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteByte(op)
	maphash.WriteComparable(&h, to)
	maphash.WriteComparable(&h, a.ok)
	h.Write(a.value)
	for _, p := range a.found {
		h.WriteString(p.Key)
		h.WriteByte('=')
		h.Write(p.Value)
		h.WriteByte('\n')
	}
	return h.Sum64()
}

// grant is a lease that an actor has and has not released.
type grant struct {
	reservation.Reservation
	by string
}

// state is a moment of a walk. A move makes a new one.
type state struct {
	mem     *mem
	now     int64
	ticks   []int64  // those to come
	at      []*point // of each actor; nil: it is done, or has crashed
	crashed bool     // an actor has crashed
	grants  []grant
	noted   []string // by actors, for the check of the end
	faults  []string
	path    []int // the moves that led here
}

func (s *state) note(text string) { s.noted = append(slices.Clone(s.noted), text) }

// given checks a new lease against the live ones.
func (s *state) given(by string, r reservation.Reservation) {
	for _, g := range s.grants {
		if g.LeaseEnd.UnixMilli() > s.now && r.LeaseEnd.UnixMilli() > s.now &&
			(g.Host == r.Host || g.Group == r.Group) {
			s.faults = append(s.faults, fmt.Sprintf("%s was given %+v while %s has %+v", by, r,
				g.by, g.Reservation))
		}
	}
	s.grants = append(slices.Clone(s.grants), grant{r, by})
}

// extended replaces a lease by the same one with another end.
func (s *state) extended(r reservation.Reservation, end time.Time) {
	s.grants = slices.Clone(s.grants)
	for i, g := range s.grants {
		if g.Reservation == r {
			s.grants[i].LeaseEnd = end
		}
	}
}

// returned removes a lease from the live ones. The actor calls it before the release, because it
// does not use the lease after that.
func (s *state) returned(r reservation.Reservation) {
	s.grants = slices.DeleteFunc(slices.Clone(s.grants), func(g grant) bool { return g.Reservation == r })
}

// start lets every actor run to its first call.
func (sc scenario) start(m *mem) state {
	s := state{mem: m, now: walkStart, ticks: sc.ticks}
	for _, a := range sc.actors {
		p := &point{actor: a, next: map[answered]*point{}}
		p.run()
		s.at = append(s.at, nil)
		s.stand(len(s.at)-1, p)
	}
	return s
}

// stand puts an actor at a point. What it did on the way there happens now.
func (s *state) stand(i int, p *point) {
	s.at[i] = p
	if p.done {
		s.at[i] = nil
	}
	for _, do := range p.did {
		do(s)
	}
}

// moves returns the possible moves of a state: 2i lets actor i make its next call, 2i+1 makes it
// crash before, and the last one lets time jump.
func (s *state) moves(sc scenario) (moves []int) {
	for i, p := range s.at {
		if p == nil {
			continue
		}
		moves = append(moves, 2*i)
		if !s.crashed && (sc.crashes == "" || sc.crashes == sc.actors[i].name) {
			moves = append(moves, 2*i+1)
		}
	}
	if len(s.ticks) > 0 {
		moves = append(moves, 2*len(s.at))
	}
	return moves
}

// move returns the state after a move.
func (s state) move(m int, sc scenario) state {
	s.path = append(slices.Clone(s.path), m)
	if m == 2*len(s.at) {
		s.now += s.ticks[0]
		s.ticks = s.ticks[1:]
		return s
	}
	i := m / 2
	p := s.at[i]
	s.at = slices.Clone(s.at)
	if m%2 == 1 {
		s.at[i], s.crashed = nil, true
		return s
	}
	for {
		a, after := p.call.of(s.mem)
		if sc.lost == nil || !sc.lost(p.actor.name, p.call) {
			s.mem = after
		}
		s.stand(i, p.after(a, s.now))
		if p = s.at[i]; p == nil || p.actor.name != sc.atOnce {
			return s
		}
	}
}

// hash is of everything that the future of the walk depends on.
func (s *state) hash() [2]uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	number(uint64(s.now))
	maphash.WriteComparable(&h, s.crashed)
	for _, g := range s.grants {
		h.WriteString(g.by)
		number(g.Token)
		number(uint64(g.LeaseEnd.UnixMilli()))
	}
	for _, text := range s.noted {
		h.WriteString(text)
	}
	for _, p := range s.at {
		if p == nil {
			number(1) // its past answers no longer matter; 0 has who has had none
		} else {
			number(p.seen)
		}
	}
	number(uint64(len(s.ticks)))
	a := h.Sum64()
	for _, key := range s.mem.keys {
		h.WriteString(key)
		h.WriteByte('=')
		h.WriteString(s.mem.values[key])
	}
	return [2]uint64{h.Sum64(), a}
}

// checkEnd lets time pass and the janitor run. Then every host must be free to lease, in turn:
// nothing is lost.
func (s *state) checkEnd(sc scenario) {
	now := s.now + walkLease + walkPenalty + 100_000
	store := New(Config{KV: s.mem.clone(), ID: "end", Penalty: walkPenalty * time.Millisecond,
		Now: func(context.Context) (int64, error) { return now, nil }})
	ctx := context.Background()
	if err := store.Sweep(ctx); err != nil {
		s.faults = append(s.faults, fmt.Sprintf("the last sweep: %v", err))
		return
	}
	served := map[string]bool{}
	for range 3 * len(sc.hosts) {
		got, err := store.ReserveNextHost(ctx, time.Second, 1, "end")
		if errors.Is(err, reservation.ErrNotNow) {
			break
		}
		if err != nil {
			s.faults = append(s.faults, fmt.Sprintf("the last reservation: %v", err))
			return
		}
		served[got[0].Host] = true
		if err := store.ReleaseHost(ctx, got[0].Host, got[0].Token, time.UnixMilli(now+1)); err != nil {
			s.faults = append(s.faults, fmt.Sprintf("the last release: %v", err))
		}
		now += 2
		if err := store.Sweep(ctx); err != nil {
			s.faults = append(s.faults, fmt.Sprintf("the last sweep: %v", err))
		}
	}
	switch {
	case sc.end != nil:
		if fault := sc.end(s, served); fault != "" {
			s.faults = append(s.faults, fault)
		}
	case len(served) != len(sc.hosts):
		s.faults = append(s.faults, fmt.Sprintf("only %v of %v are ever served again", served, sc.hosts))
	}
}

// explore walks all schedules of a scenario. It returns how many states and ends it met, and the
// first fault.
func (sc scenario) explore(t *testing.T) (states, ends int, fault string) {
	base := newMem()
	prepared := New(Config{KV: base, ID: "prepare", Penalty: walkPenalty * time.Millisecond,
		Now: func(context.Context) (int64, error) {
			return walkStart - 1, nil
		}})
	sc.prepare(t, prepared)
	base.blind = sc.blind
	first := sc.start(base)
	seen := map[[2]uint64]bool{first.hash(): true}
	for left := []state{first}; len(left) > 0; {
		s := left[len(left)-1]
		left = left[:len(left)-1]
		moves := s.moves(sc)
		if len(moves) == 0 {
			ends++
			s.checkEnd(sc)
		}
		for _, m := range moves {
			next := s.move(m, sc)
			s.faults = append(s.faults, next.faults...)
			if h := next.hash(); !seen[h] {
				seen[h] = true
				left = append(left, next)
			}
		}
		if len(s.faults) > 0 {
			return len(seen), ends, fmt.Sprintf("after %v:\n%s", s.path, strings.Join(s.faults, "\n"))
		}
	}
	return len(seen), ends, ""
}
