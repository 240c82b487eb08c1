package engine

import (
	"math/rand/v2"
	"runtime/metrics"
	"testing"
	"time"

	"urlserver/configs"
)

// walk is an engine that shares a reservation, among others who answer late, wrong or not at all,
// under virtual time and a seed. At times it freezes past its leases, and all that was said
// meanwhile comes at once.
type walk struct {
	t       *testing.T
	rng     *rand.Rand
	e       *Engine
	cfg     configs.Config
	now     time.Duration
	todo    []todo
	calm    bool // nothing goes wrong any more, and no more documents come
	given   int  // documents, so far
	docs    walkIndex
	names   map[string]answer
	ends    map[string]time.Duration // of what names has
	spiders map[uint32]bool
	conns   map[uint32]int // how many spiders a number has had
	store   walkStore
}

// todo is something that happens at a moment.
type todo struct {
	at time.Duration
	do func()
}

const (
	walkHosts  = 40
	walkAddrs  = 12
	walkLease  = 4 * second
	stepTakes  = 20 * time.Microsecond
	walkTime   = 60 * second
	calmTime   = 10 * time.Minute // by when all that is held has ended
	walks      = 100
	mostIdling = 200     // steps in a row without anything from outside
	mostMemory = 1 << 30 // bytes, of all walks; they take some MB
)

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), names: map[string]answer{},
		ends: map[string]time.Duration{}, spiders: map[uint32]bool{}, docs: newWalkIndex(), conns: map[uint32]int{},
		store: walkStore{leases: map[string]walkLeaseOf{}, bound: map[string]walkBound{}},
	}
	w.cfg = configs.Default()
	w.cfg.QueueCount, w.cfg.QueueLen, w.cfg.ReqHostPerSec = 4+w.rng.IntN(8), 2+w.rng.IntN(4), 1
	w.cfg.ReqHostConcurrent = 1 + w.rng.IntN(2)
	w.cfg.Robots.Enabled = w.chance(70)
	w.cfg.Robots.ErrorTTL, w.cfg.Robots.TTL = second, 10*second
	w.cfg.DocIndex.Batch, w.cfg.DocIndex.Quarantine = 30, second
	w.cfg.DocIndex.Retry, w.cfg.DocIndex.MaxRetry = 100*time.Millisecond, second
	w.cfg.Resolver.GiveUp, w.cfg.Resolver.Concurrency = w.some(20*second), 1+w.rng.IntN(16)
	w.cfg.Politeness.Patience = time.Duration(1+w.rng.IntN(8)) * second
	w.cfg.TimeoutSpiderStatus = time.Duration(2+w.rng.IntN(10)) * second
	w.cfg.Spider.MaxAttempts = 2 + w.rng.IntN(10)
	w.cfg.VHosts.RejectOver = 4 + w.rng.IntN(30)
	w.e = New(w.cfg, Options{
		Cached: w.cached, Lease: walkLease, Counted: w.chance(70), Exact: w.chance(30),
		Crawls: w.chance(50), Shared: w.chance(30),
		ForNow: func(err error) bool { return err == errServfail },
		Down:   func(err error) bool { return err == errDown },
	})
	return w
}

func (w *walk) chance(percent int) bool { return w.rng.IntN(100) < percent }

// bad tells if something goes wrong that does so in some percent of all cases.
func (w *walk) bad(percent int) bool { return !w.calm && w.chance(percent) }

func (w *walk) some(most time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(most)))
}

func (w *walk) after(d time.Duration, do func()) { w.todo = append(w.todo, todo{w.now + d, do}) }

// run lets time pass as the daemon's owner does.
func (w *walk) run(until time.Duration) {
	idling := 0
	for w.now < until {
		w.e.Advance(w.now, start.Add(w.now))
		if w.happen() {
			idling = 0
		}
		wait := w.e.Step(func() time.Duration { w.now += time.Microsecond; return w.now })
		w.now += stepTakes
		w.collect()
		if idling++; idling > mostIdling {
			w.t.Fatalf("at %v: %d steps, and nothing has come from outside", w.now, idling)
		}
		if next := w.next(); wait < 0 || next < w.now+wait {
			w.now = max(w.now, next)
		} else {
			w.now += wait
		}
		if w.bad(1) && w.chance(10) {
			w.now += walkLease/2 + w.some(walkLease)
			w.docs.froze = w.now
		}
	}
}

// next is when something happens outside.
func (w *walk) next() time.Duration {
	least := w.now + second
	for i := range w.todo {
		least = min(least, w.todo[i].at)
	}
	return least
}

// happen does some of what is due.
func (w *walk) happen() (any bool) {
	for n := range eventsAtOnce {
		at := -1
		for i := range w.todo {
			if w.todo[i].at <= w.now && (at < 0 || w.todo[i].at < w.todo[at].at) {
				at = i
			}
		}
		if at < 0 {
			return n > 0
		}
		do := w.todo[at].do
		w.todo[at] = w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		do()
	}
	return true
}

const eventsAtOnce = 5

func (w *walk) collect() {
	out := &w.e.Out
	for _, name := range out.Lookups {
		w.lookUp(name)
	}
	for _, f := range out.Fetches {
		w.fetch(f)
	}
	if out.Ask != nil {
		w.index(out.Ask)
	}
	if out.Leases != nil {
		w.claims(out.Leases)
	}
	w.takeOutcomes(out)
	dirty, drop := out.Dirty, out.Drop
	*out = Out{}
	for _, id := range drop {
		w.after(w.some(second), func() { w.hangUp(id) })
	}
	for _, id := range dirty {
		if w.spiders[id] && w.e.spiders.byID[id].writingSince < 0 {
			w.read(id)
		}
	}
}

// empty checks that nothing is kept of what has ended.
func (w *walk) empty() {
	e := w.e
	under := 0
	for host := range e.leases.bindings.byHost.Cap() {
		if e.isBindPending(host) {
			under++
		}
	}
	moving := 0
	e.slots.Hosts(1, uint32(e.slots.Counts().Hosts)+walkHosts, func(host uint32) {
		if v := e.slots.Host(host).View(); v.Moving || v.Incoming != 0 {
			moving++
		}
	})
	for what, n := range map[string]int{
		"documents": e.slots.Counts().Held, "look-ups": len(e.dns.lookups),
		"look-ups again": e.dns.retrying, "names that fail": len(e.dns.failing),
		"fetches of robots.txt": len(e.robots.open),
		"requests for them": e.robots.limits[0].quick + e.robots.limits[0].slow +
			e.robots.limits[1].quick + e.robots.limits[1].slow,
		"trips to other hosts": len(e.robots.redirected), "leases": e.leases.held.len,
		"renewals": e.leases.renewals.Len(), "releases": len(e.leases.releases),
		"hosts to be bound":                  len(e.leases.bindings.proposals) + under,
		"hosts that move, or are waited for": moving, "told groups": e.leases.reporter.reported.len,
		"tellers": len(e.leases.reporter.reporters), "changed groups": len(e.leases.reporter.changed),
	} {
		if n != 0 {
			w.t.Errorf("%d %s are left", n, what)
		}
	}
	for host, l := range w.store.leases {
		if l.token != 0 && l.ends > w.now {
			w.t.Errorf("%s is leased until %v", host, l.ends)
		}
	}
}

// boundMemory ends this process, rather than the machine, when an engine grows without end.
func boundMemory(t *testing.T) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if metrics.Read(used); used[0].Value.Uint64() > mostMemory {
				panic("an engine grows without end")
			}
		}
	}()
}

// TestWalk: whatever comes when, the engine rests when it has nothing to do, loses no document, keeps
// the gaps of hosts and addresses, and keeps nothing of what has ended.
func TestWalk(t *testing.T) {
	boundMemory(t)
	for seed := range uint64(walks) {
		w := newWalk(t, seed)
		for range 1 + w.rng.IntN(3) {
			w.connect()
		}
		w.operate()
		w.run(walkTime)
		w.calm = true
		w.connectAs("")
		w.cfg.Rules = nil
		w.e.Reconfigure(w.cfg)
		w.run(w.now + calmTime)
		w.lost()
		if w.empty(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
