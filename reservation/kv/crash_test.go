package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/reservation"
)

// dying is a KV of one process. Its calls take a random time. After so many calls the process is dead: each
// call in progress has happened or not, and no more is done.
type dying struct {
	*mem
	mu   sync.Mutex
	rng  *rand.Rand
	left int
	dead context.CancelFunc
}

var errDead = errors.New("the process is dead")

// call waits before a call of the KV, and reports whether the process is alive.
func (d *dying) call(ctx context.Context) error {
	d.mu.Lock()
	d.left--
	wait := time.Duration(d.rng.IntN(20)) * time.Millisecond
	if d.rng.IntN(100) == 0 { // the process stands still
		wait = time.Duration(d.rng.IntN(20_000)) * time.Millisecond
	}
	if d.left == 0 {
		d.dead()
	}
	dead := d.left <= 0
	d.mu.Unlock()
	time.Sleep(wait)
	if dead || ctx.Err() != nil {
		return errDead
	}
	return nil
}

func (d *dying) Get(ctx context.Context, key string) ([]byte, error) {
	if err := d.call(ctx); err != nil {
		return nil, err
	}
	return d.mem.Get(ctx, key)
}

func (d *dying) CompareAndSwap(ctx context.Context, key string, was, to []byte) (bool, error) {
	if err := d.call(ctx); err != nil {
		return false, err
	}
	return d.mem.CompareAndSwap(ctx, key, was, to)
}

func (d *dying) Scan(ctx context.Context, from, before string, limit int) ([]Pair, error) {
	if err := d.call(ctx); err != nil {
		return nil, err
	}
	return d.mem.Scan(ctx, from, before, limit)
}

// TestCrashes lets processes change aliases, bind, reserve and release at random, at the same time, and
// die in the midst. No two leases are in force for hosts of one group, and afterwards no record is left frozen
// and every host can be reserved.
func TestCrashes(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	for n := range runs {
		seed := uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { crashes(t, seed) }) })
	}
}

// leases has the leases in force.
type leases struct {
	mu  sync.Mutex
	all []reservation.Reservation
}

func (l *leases) drop(r reservation.Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(g reservation.Reservation) bool { return g == r })
}

// add adds a lease, and checks it against the others.
func (l *leases) add(t *testing.T, r reservation.Reservation, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.all {
		if g.LeaseEnd.After(at) && r.LeaseEnd.After(at) && (g.Host == r.Host || g.Group == r.Group) {
			t.Errorf("given %+v while another has %+v", r, g)
		}
	}
	l.all = append(l.all, r)
}

const crashHosts, crashAliases, crashGroups = 5, 2, 3 // how many

func crashes(t *testing.T, seed uint64) {
	m := newMem()
	began := time.Now()
	now := func(context.Context) (int64, error) { return walkStart + time.Since(began).Milliseconds(), nil }
	at := func() time.Time { n, _ := now(nil); return time.UnixMilli(n) }
	prepare := New(Config{KV: m, ID: "prepare", Penalty: time.Second, Now: now})
	var hosts []string
	for i := range crashHosts {
		hosts = append(hosts, fmt.Sprintf("h%d.test", i))
		if _, err := prepare.AddHost(t.Context(), hosts[i], time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	var held leases
	var all sync.WaitGroup
	for p := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(p)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		kv := &dying{mem: m, rng: rand.New(rand.NewPCG(seed, uint64(100+p))), left: 100 + rng.IntN(900), dead: cancel}
		s := New(Config{KV: kv, ID: fmt.Sprint("p", p), Penalty: time.Second, Parallel: 1 + rng.IntN(8), Now: now})
		for range 3 {
			each := rand.New(rand.NewPCG(seed, rng.Uint64()))
			all.Go(func() {
				for ctx.Err() == nil {
					act(ctx, t, s, each, hosts, &held, at)
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Hour)
	checkRest(t, New(Config{KV: m, ID: "last", Penalty: time.Second, Parallel: 4, Now: now}), m, hosts)
}

// checkRest checks what processes that are dead have left.
func checkRest(t *testing.T, last *Store, m *mem, hosts []string) {
	for range 3 {
		if err := last.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	for _, key := range m.keys {
		if key[0] != 'a' && key[0] != 'h' {
			continue
		}
		if r, err := last.read(t.Context(), key); err != nil || r.Frozen != 0 {
			t.Errorf("%s is still frozen: %s, %v", key, r.raw, err)
		}
	}
	if c, _, err := last.readChange(t.Context()); err != nil || c.Phase != over {
		t.Errorf("the change %+v is in progress, %v", c, err)
	}
	for _, host := range hosts {
		r, err := last.TryReserve(t.Context(), host, time.Minute, "")
		if err == nil {
			err = last.ReleaseHost(t.Context(), host, r.Token, time.Time{})
		}
		if err != nil {
			t.Errorf("%s in the end: %v", host, err)
		}
		h, _ := last.read(t.Context(), hostKey(host))
		for n := range crashAliases {
			alias := fmt.Sprint("alias", n)
			a, _ := last.read(t.Context(), aliasKey(alias))
			if has := slices.Contains(a.Hosts, host); has != (h.Alias == alias) {
				t.Errorf("%s has the alias %q, and %s has %q", host, h.Alias, alias, a.Hosts)
			}
		}
	}
}

// act makes one call at random. It may fail.
func act(ctx context.Context, t *testing.T, s *Store, rng *rand.Rand, hosts []string, held *leases,
	at func() time.Time) {
	some := func() (list []string) {
		for _, host := range hosts {
			if rng.IntN(2) == 0 {
				list = append(list, host)
			}
		}
		return list
	}
	host, alias := hosts[rng.IntN(len(hosts))], fmt.Sprint("alias", rng.IntN(crashAliases))
	switch rng.IntN(8) {
	case 0:
		s.SetAlias(ctx, alias, some())
	case 1:
		if list := some(); len(list) > 0 {
			s.JoinAlias(ctx, alias, list)
		}
	case 2:
		s.Bind(ctx, []reservation.Binding{{Host: host, Group: fmt.Sprintf("10.0.0.%d", rng.IntN(crashGroups))}},
			time.Duration(1+rng.IntN(5000))*time.Millisecond)
	case 3:
		s.Sweep(ctx)
	default:
		r, err := s.TryReserve(ctx, host, time.Duration(2+rng.IntN(20))*time.Second, s.cfg.ID)
		if err != nil {
			break
		}
		held.add(t, r, at())
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		held.drop(r)
		s.ReleaseHost(ctx, host, r.Token, time.Time{})
	}
}

// hooked is a KV of one process that calls a function before each read.
type hooked struct {
	*mem
	before func(key string)
}

func (h hooked) Get(ctx context.Context, key string) ([]byte, error) {
	h.before(key)
	return h.mem.Get(ctx, key)
}

// TestLateFreeze: a process stands still in the midst of a change that another completes. When it goes on, the next
// change has frozen a host that was not in the first one. That host comes into the alias nonetheless.
func TestLateFreeze(t *testing.T) {
	m, now := newMem(), func(context.Context) (int64, error) { return walkStart, nil }
	begun, goOn, done := make(chan bool), make(chan bool), make(chan bool)
	var once sync.Once
	wake := goOn
	late := New(Config{ID: "late", Now: now, KV: hooked{m, func(key string) {
		if key == aliasKey("it") && string(m.get(changeKey)) != "" {
			once.Do(func() { close(begun); <-wake })
		}
	}}})
	go func() {
		defer close(done)
		if err := late.SetAlias(t.Context(), "it", []string{"a.test"}); err != nil {
			t.Error(err)
		}
	}()
	<-begun
	other := New(Config{ID: "other", Now: now, KV: hooked{m, func(key string) {
		a, err := parse("", m.get(aliasKey("it")))
		if err != nil {
			t.Error(err)
		}
		if key == hostKey("z.test") && len(a.Hosts) == 2 && goOn != nil {
			close(goOn)
			goOn = nil
			<-done
		}
	}}})
	if err := other.SetAlias(t.Context(), "it", []string{"a.test", "z.test"}); err != nil {
		t.Fatal(err)
	}
	if goOn != nil {
		t.Fatal("the late process did not go on")
	}
	for _, host := range []string{"a.test", "z.test"} {
		if h, err := other.read(t.Context(), hostKey(host)); err != nil || h.Alias != "it" || h.Frozen != 0 {
			t.Errorf("%s: %s, %v; want it in the alias", host, h.raw, err)
		}
	}
}
