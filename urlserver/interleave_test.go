package urlserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/reservation"
	"urlserver/reservation/kv"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

// actor is a goroutine that stops before each of its calls, so that a scheduler chooses the next
// call. Only one actor runs at a time.
type actor struct {
	step chan bool // true: continue; false: die
	stop chan bool // true: it waits before a call; false: it has ended
}

func newActor() *actor { return &actor{step: make(chan bool), stop: make(chan bool)} }

func (a *actor) start(do func()) {
	go func() {
		defer func() { a.stop <- false }()
		do()
	}()
}

// call waits for the scheduler.
func (a *actor) call() {
	a.stop <- true
	if !<-a.step {
		runtime.Goexit()
	}
}

// stepped is a store whose calls wait for the scheduler.
type stepped struct {
	reservation.Store
	a *actor
}

func (s *stepped) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	s.a.call()
	return s.Store.Do(ctx, calls)
}

func (s *stepped) Bind(ctx context.Context, b []reservation.Binding, ttl time.Duration) ([]reservation.Bound, error) {
	s.a.call()
	return s.Store.Bind(ctx, b, ttl)
}

func (s *stepped) GetAlias(ctx context.Context, name string) (string, []string, error) {
	s.a.call()
	return s.Store.GetAlias(ctx, name)
}

func (s *stepped) SetAlias(ctx context.Context, alias string, hosts []string) error {
	s.a.call()
	return s.Store.SetAlias(ctx, alias, hosts)
}

func (s *stepped) JoinAlias(ctx context.Context, alias string, hosts []string) ([]string, error) {
	s.a.call()
	return s.Store.JoinAlias(ctx, alias, hosts)
}

// tableKV is the KV of a kv.Store. If it has an actor, each of its calls waits for the scheduler.
type tableKV struct {
	*rows
	a *actor
}

type rows struct {
	mu     sync.Mutex // guards values
	values map[string][]byte
}

func (r *tableKV) Get(_ context.Context, key string) ([]byte, error) {
	r.a.call()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[key], nil
}

func (r *tableKV) CompareAndSwap(_ context.Context, key string, was, to []byte) (bool, error) {
	r.a.call()
	r.mu.Lock()
	defer r.mu.Unlock()
	now, is := r.values[key]
	if to == nil {
		delete(r.values, key)
		return is, nil
	}
	if is != (was != nil) || string(now) != string(was) {
		return false, nil
	}
	r.values[key] = to
	return true, nil
}

func (r *tableKV) Scan(_ context.Context, from, before string, limit int) (list []kv.Pair, err error) {
	r.a.call()
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for key := range r.values {
		if key >= from && key < before {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys[:min(limit, len(keys))] {
		list = append(list, kv.Pair{Key: key, Value: r.values[key]})
	}
	return list, nil
}

// meeting is the reservation clients of several daemons that share a store. Each client has a host
// of its own, and a rule puts all hosts into one group. The oracle knows what clients know, and
// when they start calls.
type meeting struct {
	t       *testing.T
	now     time.Time
	store   reservation.Store // without actors
	actors  []*actor
	trace   []string
	holder  string    // of the group, as the clients know
	ends    time.Time // of its lease
	allowed time.Time // earliest time of the next lease
	granted int
	joined  []string // hosts that are in the group, as clients know
}

const (
	meetLease   = 10 * time.Second
	meetPenalty = time.Second
	meetGap     = 3 * time.Second
)

func meetHost(n int) string { return fmt.Sprintf("%c.example", 'a'+n) }

// meet makes a meeting of clients. open returns the store of a client; its calls wait for the
// client's actor.
func meet(t *testing.T, clients, turns int, open func(m *meeting) func(a *actor) reservation.Store) *meeting {
	m := &meeting{t: t, now: time.Unix(1_700_000_000, 0)}
	of := open(m)
	for n := range clients {
		a := newActor()
		r := &Reserver{Store: of(a), Lease: meetLease, Holder: meetHost(n), Log: zerolog.Nop(),
			now: func() time.Time { return m.now }}
		a.start(func() { m.client(r, n, turns) })
		m.actors = append(m.actors, a)
	}
	return m
}

// client binds its host, and reserves it several times for one request each.
func (m *meeting) client(r *Reserver, n, turns int) {
	ctx, host := context.Background(), meetHost(n)
	in := ""
	for in == "" {
		addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
		c := &engine.LeaseBatch{Binds: []engine.Bind{{Host: host, Addr: addr, Proposed: addr.String(), Alias: "site",
			Joins: true, TTL: time.Hour}}}
		r.do(ctx, c)
		in = c.Binds[0].Group
	}
	if in != "site" {
		m.fail("%s is told that its group is %q", host, in)
	}
	m.joined = append(m.joined, host)
	for range turns {
		c := &engine.LeaseBatch{Acquires: []engine.LeaseRequest{{Host: host}}}
		r.do(ctx, c)
		if try := c.Acquires[0]; try.Answer == engine.Granted {
			m.grant(host)
			// the request has ended, and the client knows that it must release the group
			m.allowed, m.holder = m.now.Add(meetGap), ""
			r.do(ctx, &engine.LeaseBatch{Releases: []engine.Release{{Host: host, Token: try.Token, Next: meetGap}}})
		}
	}
}

func (m *meeting) grant(host string) {
	m.granted++
	if m.holder != "" && m.now.Before(m.ends.Add(meetPenalty)) {
		m.fail("%s is reserved while %s is, or was lost by it a moment ago", host, m.holder)
	}
	if m.now.Before(m.allowed) {
		m.fail("%s is reserved %v too soon", host, m.allowed.Sub(m.now))
	}
	m.holder, m.ends = host, m.now.Add(meetLease)
}

func (m *meeting) fail(format string, args ...any) {
	m.t.Errorf("%s, after %s", fmt.Sprintf(format, args...), strings.Join(m.trace, " "))
}

// run lets the actors make their calls. choose chooses one of n. ticks is how often time passes in
// between. dies decides whether an actor dies instead of making its call.
func (m *meeting) run(ticks int, choose func(n int) int, dies func() bool) {
	alive := []*actor{}
	for _, a := range m.actors {
		if <-a.stop {
			alive = append(alive, a)
		}
	}
	for len(alive) > 0 {
		n := len(alive)
		if ticks > 0 {
			n++
		}
		i := choose(n)
		if i == len(alive) {
			ticks--
			m.now = m.now.Add(meetGap)
			m.trace = append(m.trace, "tick")
			continue
		}
		m.trace = append(m.trace, fmt.Sprint(slices.Index(m.actors, alive[i])))
		alive[i].step <- !dies()
		if !<-alive[i].stop {
			alive = slices.Delete(alive, i, i+1)
		}
	}
}

// over checks the end state when all clients have ended: each client that knows that it is in the
// group is in it, and the group may not be requested too soon.
func (m *meeting) over(clients int) {
	ctx := context.Background()
	if err := m.store.Sweep(ctx); err != nil {
		m.fail("Sweep: %v", err)
	}
	_, hosts, err := m.store.GetAlias(ctx, "site")
	for _, host := range m.joined {
		if !slices.Contains(hosts, host) {
			m.fail("the group has %q, %v; %s was told that it is in it", hosts, err, host)
		}
	}
	for n := range clients {
		if _, err := m.store.JoinAlias(ctx, "site", []string{meetHost(n)}); err != nil { // if it is dead
			m.fail("JoinAlias: %v", err)
		}
		if _, err := m.store.AddHost(ctx, meetHost(n), time.Time{}); err != nil {
			m.fail("AddHost: %v", err)
		}
	}
	if m.now.Before(m.allowed) {
		m.now = m.allowed.Add(-time.Millisecond)
		for n := range clients {
			if _, err := m.store.TryReserve(ctx, meetHost(n), meetLease, ""); err == nil {
				m.fail("%s is reserved 1 ms too soon", meetHost(n))
			}
		}
	}
	m.now = m.now.Add(meetLease + meetPenalty + meetGap)
	if _, err := m.store.TryReserve(ctx, meetHost(0), meetLease, ""); err != nil {
		m.fail("when all is over: %v", err)
	}
	if _, err := m.store.TryReserve(ctx, meetHost(1), meetLease, ""); err == nil {
		m.fail("two hosts of the group are reserved")
	}
}

func overMemory(m *meeting) func(a *actor) reservation.Store {
	store := memory.New(memory.Config{Penalty: meetPenalty, Now: func() time.Time { return m.now }})
	m.store = store
	return func(a *actor) reservation.Store { return &stepped{store, a} }
}

// overTable makes a kv.Store for each client, as services that share one have.
func overTable(m *meeting) func(a *actor) reservation.Store {
	shared, ids := &rows{values: map[string][]byte{}}, 0
	config := func(a *actor) kv.Config {
		ids++
		return kv.Config{
			KV: &tableKV{shared, a}, ID: fmt.Sprint(ids), Penalty: meetPenalty,
			Now: func(context.Context) (int64, error) { return m.now.UnixMilli(), nil },
		}
	}
	free := newActor()
	go func() {
		for range free.stop {
			free.step <- true
		}
	}()
	m.t.Cleanup(func() { close(free.stop) })
	m.store = kv.New(config(free))
	return func(a *actor) reservation.Store { return kv.New(config(a)) }
}

// TestClientsInterleave runs the calls of two daemons' clients in every order, with time passing
// anywhere.
func TestClientsInterleave(t *testing.T) {
	const clients = 2
	ticks := 1
	if testing.Short() {
		ticks = 0
	}
	var path, width []int
	runs, granted := 0, 0
	for more := true; more && !t.Failed(); {
		depth := 0
		m := meet(t, clients, 2, overMemory)
		m.run(ticks, func(n int) int {
			if depth == len(path) {
				path, width = append(path, 0), append(width, n)
			}
			depth++
			return path[depth-1]
		}, func() bool { return false })
		m.over(clients)
		runs, granted = runs+1, granted+m.granted
		for more = false; len(path) > 0 && !more; {
			last := len(path) - 1
			if path[last]++; path[last] < width[last] {
				more = true
			} else {
				path, width = path[:last], width[:last]
			}
		}
	}
	t.Logf("%d interleavings, %d reservations", runs, granted)
	if runs < 1000 || granted < runs {
		t.Errorf("%d interleavings with %d reservations; want a thousand at least, and a reservation in "+
			"each", runs, granted)
	}
}

// TestClientsInterleaveAtRandom has too many clients and ticks to try every order. Some clients die
// between two calls. With a KV, every access to it is a call.
func TestClientsInterleaveAtRandom(t *testing.T) {
	for name, c := range map[string]struct {
		open  func(*meeting) func(*actor) reservation.Store
		seeds uint64
	}{"memory": {overMemory, 1000}, "kv": {overTable, 200}} {
		t.Run(name, func(t *testing.T) {
			granted := 0
			for seed := uint64(0); seed < c.seeds && !t.Failed(); seed++ {
				rnd := rand.New(rand.NewPCG(seed, 7))
				const clients = 3
				m := meet(t, clients, 4, c.open)
				m.run(8, rnd.IntN, func() bool { return seed%2 == 1 && rnd.IntN(40) == 0 })
				m.over(clients)
				granted += m.granted
			}
			if granted < int(c.seeds)/4 {
				t.Errorf("%d reservations with %d seeds; want more", granted, c.seeds)
			}
		})
	}
}

// TestDaemonsInterleave runs daemons with their engines, whose calls of the store interleave at
// random. The world sees each request.
func TestDaemonsInterleave(t *testing.T) {
	const docs = 24
	rule := configs.HostRule{Hosts: []string{"*.example"}, Group: "site"}
	for seed := range uint64(4) {
		w := newWorld(t, seed, 3)
		w.alias, w.mixed = true, true
		for n, nd := range w.nodes {
			w.ruled(nd, rule)
			ids, urls := docsOf(n*docs, docs, 4)
			w.give(nd, ids, urls)
		}
		w.run(10 * time.Minute)
		for id := range 3 * docs {
			if w.sent[fmt.Sprint(id)] != 1 {
				t.Errorf("seed %d: document %d was sent %d times; want once", seed, id, w.sent[fmt.Sprint(id)])
			}
		}
		if _, hosts, err := w.store.GetAlias(t.Context(), "site"); err != nil || len(hosts) != 4 {
			t.Errorf("seed %d: the group has %q, %v; want all four hosts", seed, hosts, err)
		}
		w.end()
	}
}
