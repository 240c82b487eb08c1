// Package chaos has daemons that share a reservation go through all that can go wrong, while an
// oracle beside the web servers looks whether anybody is asked too often, twice at once, or not at
// all. It has tests only.
package chaos

import (
	"flag"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	during = flag.Duration("time", 15*time.Second, "how long there is trouble")
	all    = flag.Bool("all", false, "test with each store")
	hosts  = flag.Int("hosts", 200, "how many hosts there are")
	seed   = flag.Uint64("seed", 0, "of the trouble; 0: the same each time, and with -all another one")
)

const (
	webPort      = 8080
	daemonCount  = 4
	spidersEach  = 2
	restTime     = 5 * time.Minute // at most, until all is fetched that is left when the trouble ends
	lookInterval = 250 * time.Millisecond
)

// rig is daemons, spiders, and all that they talk to.
type rig struct {
	t         *testing.T
	rnd       *rand.Rand
	bin, dir  string
	indexAddr string

	// A request that a daemon sends when its lease is about to end is open for that request's time;
	// nothing on the wire can end it. So pages take less than the penalty, and the penalty no less
	// than the gap.
	lease, penalty, janitor, gap, takes time.Duration
	settle                              time.Duration // after a store's failure, until reservations go on for sure

	world  *world
	oracle *oracle
	index  *index
	stuck  *stuck

	daemons []*daemon
	spiders []*process
	others  []*process // that keep reservations
	wires   []*wire
	stores  []store
	// reservation is what the settings of daemon n say of the store.
	reservation func(n int) string

	agenda   agenda
	began    time.Time
	trouble  bool
	reserves time.Time // from which on groups can be reserved
	happened map[string]int
	events   []string // what happened when
}

// store is a part of where reservations are kept.
type store struct {
	what        string
	every, away time.Duration
	fail, mend  func()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	if *seed == 0 && *all {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	r := &rig{
		t: t, rnd: rand.New(rand.NewPCG(*seed, 0)), bin: build(t), dir: t.TempDir(), happened: map[string]int{},
		lease: 4 * time.Second, penalty: time.Second, janitor: time.Second, gap: time.Second,
		takes: 300 * time.Millisecond,
	}
	r.settle = 2 * r.lease
	late := &stalls{}
	late.watch(t)
	var l net.Listener
	var err error
	for range 20 { // another run may have these addresses
		r.world = newWorld(byte(100+rand.IntN(100)), *hosts)
		if l, err = net.Listen("tcp", r.world.own(1)+":4100"); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.oracle = newOracle(r.gap, r.takes, late)
	r.index = newIndex(r.world.hosts, rand.New(rand.NewPCG(*seed, 1)))
	r.stuck = &stuck{index: r.index, oracle: r.oracle, places: r.world.places, tell: r.explain,
		since: map[int]time.Duration{}}
	serveWeb(t, r.world.addrs, server{oracle: r.oracle, serves: r.world.serves, takes: r.takes})
	srv := &http.Server{Handler: r.index}
	go srv.Serve(l) // until Close
	t.Cleanup(func() { srv.Close() })
	r.indexAddr = l.Addr().String()
	return r
}

// launch starts everything.
func (r *rig) launch() {
	r.t.Helper()
	for n := range daemonCount {
		r.daemons = append(r.daemons, r.newDaemon(n))
		r.wires = append(r.wires, layWire(r.t, r.dials(n), r.listens(n), r.oracle.sent))
		for i := range spidersEach {
			r.spiders = append(r.spiders, r.newSpider(n, i))
		}
	}
	r.t.Cleanup(r.end)
	for _, p := range r.processes() {
		p.start()
	}
}

// run has trouble come, and then looks whether all gets fetched.
func (r *rig) run() {
	r.t.Helper()
	r.launch()
	r.began = time.Now()
	r.trouble, r.reserves = true, r.began.Add(r.settle)
	r.plan()
	for over := time.Now().Add(*during); time.Now().Before(over); r.step() {
	}
	r.trouble = false
	r.index.end()
	left := r.index.left()
	for over := time.Now().Add(restTime); r.index.left() > 0 && time.Now().Before(over); r.step() {
	}
	r.judge(left)
}

func (r *rig) step() {
	time.Sleep(lookInterval / 10) // between two looks
	r.agenda.do()
	if now := time.Now(); now.Sub(r.stuck.looked) > lookInterval {
		r.stuck.look(now.After(r.reserves))
	}
	for _, d := range r.daemons {
		if !d.runs() && !d.frozen && r.index.knows(d.taker()) {
			r.t.Fatalf("%s has ended by itself:\n%s", d.name, d.tail())
		}
	}
}

func (r *rig) processes() (all []*process) {
	all = append(all, r.others...)
	for _, d := range r.daemons {
		all = append(all, &d.process)
	}
	return append(all, r.spiders...)
}

func (r *rig) end() {
	if r.t.Failed() {
		r.t.Log(strings.Join(r.events, "\n"))
	}
	for _, p := range r.processes() {
		if p.cmd == nil {
			continue
		}
		p.kill()
		if r.t.Failed() {
			r.t.Logf("%s:\n%s", p.name, p.tail())
		}
	}
}

// judge tells what was seen.
func (r *rig) judge(left int) {
	r.t.Helper()
	for _, what := range slices.Sorted(maps.Keys(r.happened)) {
		r.t.Logf("%s: %d", what, r.happened[what])
	}
	missed := 0
	for _, url := range r.index.urls {
		if _, seen := r.oracle.fetched(url); !seen {
			missed++
		}
	}
	all, _ := r.oracle.fetched("")
	r.t.Logf("%d hosts, %d addresses: %d URLs ended, %d requests, %d URLs left when the trouble ended; "+
		"no progress of a host for at most %v (%s); other outcomes: %v",
		len(r.world.hosts), len(r.world.addrs), len(r.index.urls), all, left, r.stuck.longest,
		r.stuck.which, r.index.odd)
	if n := r.index.left(); n > 0 {
		r.t.Errorf("%d URLs were not fetched", n)
	}
	if missed > 0 {
		r.t.Errorf("%d URLs ended and no web server has seen them", missed)
	}
	// A lease and a janitor's period, the penalty, half a lease at most until who was refused asks
	// again, and what all that takes on a machine that has other things to do: all have had their
	// turn twice at the pace that was seen.
	turn := time.Since(r.began) * time.Duration(len(r.world.addrs)) / time.Duration(max(1, all))
	if most := r.lease + r.janitor + r.penalty + r.lease/2 + r.gap + 20*time.Second + 2*turn; r.stuck.longest > most {
		r.t.Errorf("%s had no progress for %v; %v is allowed", r.stuck.which, r.stuck.longest, most)
	}
	r.oracle.mu.Lock()
	defer r.oracle.mu.Unlock()
	f := &r.oracle.faults
	for _, text := range f.first {
		r.t.Error(text)
	}
	if f.count > 0 {
		r.t.Errorf("%d faults", f.count)
	}
}
