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

// actor is one of the programs of a scenario.
type actor struct {
	name string
	do   func(w *walk, s *Store) // runs until it is done, or until w.gate makes it crash
}

// scenario is the input of a walk.
type scenario struct {
	name    string
	prepare func(t *testing.T, s *Store) // runs alone at the start
	actors  []actor
	ticks   []int64 // how far time jumps, one jump after the other
	hosts   []string
	long    bool   // some seconds to a minute
	longest bool   // minutes
	crashes string // actors that may crash; "": any
	blind   bool   // the KV swaps without comparing, and the walk has to find the fault
}

// grant is a lease that an actor has and has not released.
type grant struct {
	reservation.Reservation
	by string
}

// walk is one run of a scenario by one schedule.
type walk struct {
	t      *testing.T
	mem    *mem
	now    int64
	ticks  []int64
	gates  []*gate
	grants []grant
	faults []string
}

// gate is where an actor waits before each call of the KV.
type gate struct {
	w       *walk
	turn    chan bool // true: continue; false: crash
	waiting chan bool // true: the actor waits for its turn; false: it is done
	seen    uint64    // hash of all answers to the actor
	done    bool
}

func (g *gate) pass() {
	g.waiting <- true
	if !<-g.turn {
		runtime.Goexit() // a crash: nothing runs after it, not even error handling
	}
}

// saw adds an answer to the state of the actor.
func (g *gate) saw(what byte, key string, answer []byte) {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(binary.LittleEndian.AppendUint64([]byte{what}, g.seen))
	h.WriteString(key)
	h.WriteByte('=')
	h.Write(answer)
	g.seen = h.Sum64()
}

func (g *gate) Get(ctx context.Context, key string) ([]byte, error) {
	g.pass()
	v, err := g.w.mem.Get(ctx, key)
	g.saw('g', key, v)
	return v, err
}

func (g *gate) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	g.pass()
	ok, err := g.w.mem.CompareAndSwap(ctx, key, was, to)
	g.saw('c', key, fmt.Append(nil, ok))
	return ok, err
}

func (g *gate) Scan(ctx context.Context, from, before string, limit int) ([]Pair, error) {
	g.pass()
	found, err := g.w.mem.Scan(ctx, from, before, limit)
	g.saw('s', from, fmt.Append(nil, found))
	return found, err
}

// given checks a new lease against the live ones.
func (w *walk) given(by string, r reservation.Reservation) {
	for _, g := range w.grants {
		if g.LeaseEnd.UnixMilli() > w.now && r.LeaseEnd.UnixMilli() > w.now &&
			(g.Host == r.Host || g.Group == r.Group) {
			w.faults = append(w.faults, fmt.Sprintf("%s was given %+v while %s has %+v", by, r,
				g.by, g.Reservation))
		}
	}
	w.grants = append(w.grants, grant{r, by})
}

// returned removes a lease from the live ones. The actor calls it before the release, because it
// does not use the lease after that.
func (w *walk) returned(r reservation.Reservation) {
	w.grants = slices.DeleteFunc(w.grants, func(g grant) bool { return g.Reservation == r })
}

// start prepares the store, and lets every actor run to its first call.
func (sc scenario) start(t *testing.T, image map[string]string, keys []string) *walk {
	w := &walk{t: t, mem: newMem(), now: walkStart, ticks: sc.ticks}
	for k, v := range image {
		w.mem.values[k] = v
	}
	w.mem.keys, w.mem.blind = slices.Clone(keys), sc.blind
	for _, a := range sc.actors {
		g := &gate{w: w, turn: make(chan bool), waiting: make(chan bool)}
		w.gates = append(w.gates, g)
		s := New(Config{KV: g, ID: a.name, Penalty: walkPenalty * time.Millisecond,
			Now: func(context.Context) (int64, error) {
				g.saw('n', "", binary.LittleEndian.AppendUint64(nil, uint64(w.now)))
				return w.now, nil
			}})
		s.sleep = func(context.Context, time.Duration) error { return nil } // the walk decides the order
		go func() {
			defer func() { g.waiting <- false }()
			a.do(w, s)
		}()
		g.done = !<-g.waiting
	}
	return w
}

// step lets an actor make its next call, or crash before it, and waits until it stands before
// another call.
func (w *walk) step(i int, crash bool) {
	g := w.gates[i]
	g.turn <- !crash
	g.done = !<-g.waiting
}

// moves returns the possible moves of a state: 2i lets actor i continue, 2i+1 makes it crash, and
// the last one lets time jump.
func (w *walk) moves(sc scenario, crashed bool) (moves []int) {
	for i, g := range w.gates {
		if g.done {
			continue
		}
		moves = append(moves, 2*i)
		if !crashed && (sc.crashes == "" || sc.crashes == sc.actors[i].name) {
			moves = append(moves, 2*i+1)
		}
	}
	if len(w.ticks) > 0 {
		moves = append(moves, 2*len(w.gates))
	}
	return moves
}

func (w *walk) move(m int) (crash bool) {
	if m == 2*len(w.gates) {
		w.now += w.ticks[0]
		w.ticks = w.ticks[1:]
		return false
	}
	w.step(m/2, m%2 == 1)
	return m%2 == 1
}

// state is a hash of everything that the future of the walk depends on.
func (w *walk) state() [2]uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	number(uint64(w.now))
	for _, g := range w.grants {
		h.WriteString(g.by)
		number(g.Token)
	}
	for _, g := range w.gates {
		if g.done {
			g.seen = 1 // its past answers no longer matter; 0 has who has had none
		}
		number(g.seen)
	}
	number(uint64(len(w.ticks)))
	a := h.Sum64()
	for _, key := range w.mem.keys {
		h.WriteString(key)
		h.WriteByte('=')
		h.WriteString(w.mem.values[key])
	}
	return [2]uint64{h.Sum64(), a}
}

// end makes the actors that still run crash.
func (w *walk) end() {
	for i, g := range w.gates {
		for !g.done {
			w.step(i, true)
		}
	}
}

// checkEnd lets time pass and the janitor run. Then every host must be free to lease, in turn:
// nothing is lost.
func (w *walk) checkEnd(sc scenario) {
	w.now += walkLease + walkPenalty + 100_000
	s := New(Config{KV: w.mem, ID: "end", Penalty: walkPenalty * time.Millisecond,
		Now: func(context.Context) (int64, error) {
			return w.now, nil
		}})
	ctx := context.Background()
	if err := s.Sweep(ctx); err != nil {
		w.faults = append(w.faults, fmt.Sprintf("the last sweep: %v", err))
		return
	}
	served := map[string]bool{}
	for range 3 * len(sc.hosts) {
		got, err := s.ReserveNextHost(ctx, time.Second, 1, "end")
		if errors.Is(err, reservation.ErrNotNow) {
			break
		}
		if err != nil {
			w.faults = append(w.faults, fmt.Sprintf("the last reservation: %v", err))
			return
		}
		served[got[0].Host] = true
		if err := s.ReleaseHost(ctx, got[0].Host, got[0].Token, time.UnixMilli(w.now+1)); err != nil {
			w.faults = append(w.faults, fmt.Sprintf("the last release: %v", err))
		}
		w.now += 2
		if err := s.Sweep(ctx); err != nil {
			w.faults = append(w.faults, fmt.Sprintf("the last sweep: %v", err))
		}
	}
	if len(served) != len(sc.hosts) {
		w.faults = append(w.faults, fmt.Sprintf("only %v of %v are ever served again", served, sc.hosts))
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
	seen := map[[2]uint64]bool{}
	stack := [][]int{nil}
	for len(stack) > 0 {
		path := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		w := sc.start(t, base.values, base.keys)
		crashed := false
		for _, m := range path {
			crashed = w.move(m) || crashed
		}
		for { // follow the first move, and leave the others for later
			if state := w.state(); seen[state] {
				break
			} else {
				seen[state] = true
			}
			moves := w.moves(sc, crashed)
			if len(moves) == 0 {
				ends++
				w.checkEnd(sc)
				break
			}
			for _, m := range moves[1:] {
				stack = append(stack, append(slices.Clone(path), m))
			}
			path = append(slices.Clone(path), moves[0])
			crashed = w.move(moves[0]) || crashed
		}
		w.end()
		if len(w.faults) > 0 {
			return len(seen), ends, fmt.Sprintf("schedule %v:\n%s", path, strings.Join(w.faults, "\n"))
		}
	}
	return len(seen), ends, ""
}
