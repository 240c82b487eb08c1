// Package chaos tests daemons that share a reservation while processes crash, stop and freeze and
// connections break. An oracle beside the web servers checks that no host is requested too often,
// twice at once, or not at all. The package has tests only.
package chaos

import (
	"flag"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	during = flag.Duration("time", 15*time.Second, "how long there is trouble")
	all    = flag.Bool("all", false, "test with each store")
	hosts  = flag.Int("hosts", 200, "how many hosts there are")
	seed   = flag.Uint64("seed", 0, "of the trouble; 0: the same each time, and with -all another one")
	leases = flag.Duration("lease", 10*time.Second, "of TestSharedNetwork, which takes eight of them and more")
)

const (
	webPort      = 8080
	daemonCount  = 4
	spidersEach  = 2
	restTime     = 5 * time.Minute // longest time after the trouble for fetching the rest
	lookInterval = 250 * time.Millisecond
	longestPage  = 300 * time.Millisecond // that a web server takes
)

// rig is the daemons, the spiders, and all servers that they use.
type rig struct {
	t         *testing.T
	rnd       *rand.Rand
	bin, dir  string
	indexAddr string

	// A request that a daemon sends just before its lease ends stays open for the time of the
	// request; nothing can end it. So a page takes less time than the penalty, and the penalty is
	// not shorter than the gap. If the answer to that request has Retry-After, the daemon can tell
	// no other one of it. So the penalty is as long as such a request and its Retry-After.
	lease, penalty, janitor, takes time.Duration
	site, address, cap             limits
	settle                         time.Duration // from a store's failure until groups can be reserved

	world  *world
	oracle *oracle
	index  *index
	stuck  *stuck

	daemons     []*daemon
	spidersEach int // of a daemon
	spiders     []*process
	others      []*process // servers of the reservation
	proxies     []*proxy
	stores      []store
	// reservation returns the settings of the reservation for daemon n
	reservation func(n int) string
	docindex    string       // settings of an index in place of index; "": none
	byClients   atomic.Int64 // requests of URL Frontier clients

	schedule schedule
	began    time.Time
	trouble  bool
	reserves time.Time // from then on groups can be reserved
	happened map[string]int
	events   []string // log of what happened, and when
}

// store is a process that stores reservations.
type store struct {
	what        string
	every, away time.Duration
	fail, mend  func()
}

// beside lets a test run at the time of others, as most of it waits. With -all there are so many hosts
// that it runs alone.
func beside(t *testing.T) {
	t.Helper()
	if !*all {
		t.Parallel()
	}
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
		t: t, rnd: rand.New(rand.NewPCG(*seed, 0)), bin: build(t), dir: t.TempDir(),
		happened: map[string]int{}, spidersEach: spidersEach,
		lease: 4 * time.Second, penalty: longestPage + retryAfter, janitor: time.Second,
		takes: longestPage,
		site:  limits{gap: time.Second, open: 1}, address: limits{gap: 500 * time.Millisecond, open: 2},
		cap: limits{perSec: 40, open: 16},
	}
	r.settle = 2 * r.lease
	late := &stalls{}
	late.watch(t)
	var l net.Listener
	var err error
	for range 20 { // another run may use these addresses
		r.world = newWorld(byte(100+rand.IntN(100)), *hosts)
		if l, err = net.Listen("tcp", r.world.own(1)+":4100"); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.oracle = newOracle(r.site, r.above, r.takes, late)
	r.index = newIndex(r.world.hosts, rand.New(rand.NewPCG(*seed, 1)))
	r.stuck = &stuck{index: r.index, oracle: r.oracle, places: r.world.places, tell: r.explain,
		since: map[int]time.Duration{}, longest: map[int]time.Duration{}}
	serveWeb(t, r.world.addrs, server{oracle: r.oracle, serves: r.world.serves, takes: r.takes})
	srv := &http.Server{Handler: r.index}
	go srv.Serve(l) // ends with Close
	t.Cleanup(func() { srv.Close() })
	r.indexAddr = l.Addr().String()
	return r
}

// above returns what has a pace beside those of the sites at an address: the shared network that
// the address is on, or the address.
func (r *rig) above(addr netip.Addr) level {
	if network := r.world.network(); network.Contains(addr) {
		return level{network.String(), r.cap}
	}
	return level{addr.String(), r.address}
}

// launch starts all processes.
func (r *rig) launch() {
	r.t.Helper()
	for n := range daemonCount {
		r.daemons = append(r.daemons, r.newDaemon(n))
		urls, name := map[string]string{}, r.daemons[n].name
		r.proxies = append(r.proxies, startProxy(r.t, r.dials(n), r.listens(n),
			func(line []byte) { r.oracle.sent(name, line, urls) },
			func(line []byte) { r.oracle.answered(name, line, urls) }))
		for i := range r.spidersEach {
			r.spiders = append(r.spiders, r.newSpider(n, i))
		}
	}
	r.t.Cleanup(r.end)
	for _, p := range r.processes() {
		p.start()
	}
}

// run causes trouble for a while, and then waits until everything is fetched.
func (r *rig) run() {
	r.t.Helper()
	r.launch()
	r.beset()
	r.index.end()
	left := r.index.left()
	r.await(r.index.left)
	r.judge(left)
}

// beset causes trouble for a while.
func (r *rig) beset() {
	r.t.Helper()
	r.began = time.Now()
	r.trouble, r.reserves = true, r.began.Add(r.settle)
	r.plan()
	for over := time.Now().Add(*during); time.Now().Before(over); r.step() {
	}
	r.trouble = false
}

// await waits until nothing is left, or for restTime.
func (r *rig) await(left func() int) {
	r.t.Helper()
	for over := time.Now().Add(restTime); left() > 0 && time.Now().Before(over); r.step() {
	}
}

func (r *rig) step() {
	time.Sleep(lookInterval / 10) // a pause between two checks
	r.schedule.do()
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

// judge checks what the oracle and the index have seen.
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
		"other outcomes: %v",
		len(r.world.hosts), len(r.world.addrs), len(r.index.urls), all, left, r.index.odd)
	if n := r.index.left(); n > 0 {
		r.t.Errorf("%d URLs were not fetched", n)
	}
	if missed > 0 {
		r.t.Errorf("%d URLs ended and no web server has seen them", missed)
	}
	r.judgeProgress(all)
	r.judgePoliteness(len(r.daemons))
}

// judgeProgress checks how long hosts had no progress while it was possible. The bound: a lease, a
// period of the janitor and the penalty, half a lease until a daemon that was denied asks again, and the
// time that all this takes on a busy machine. Meanwhile every host has had its turn twice at the measured
// pace of all addresses. The shared network has one pace for all its sites: a host that may be there has
// had its turn once at the measured pace of the network, or twice at its cap if that is sooner: a
// standstill is no pace.
func (r *rig) judgeProgress(requests int) {
	r.t.Helper()
	passed := time.Since(r.began)
	most := r.lease + r.janitor + r.penalty + r.lease/2 + r.site.gap + 20*time.Second
	sites := 0
	for host := range r.world.hosts {
		if r.world.mayShare(host) {
			sites++
		}
	}
	r.oracle.mu.Lock()
	there := len(r.oracle.left[r.world.network().String()])
	r.oracle.mu.Unlock()
	r.judgeLongest("elsewhere", false, most+2*passed*time.Duration(len(r.world.addrs))/time.Duration(max(1, requests)))
	turn := min(passed*time.Duration(sites)/time.Duration(max(1, there)),
		2*time.Duration(sites)*time.Second/time.Duration(r.cap.perSec))
	r.judgeLongest("on the shared network", true, most+turn)
}

// judgeLongest checks the longest time without progress of the hosts that may be on the shared network,
// or of the others.
func (r *rig) judgeLongest(what string, shared bool, most time.Duration) {
	r.t.Helper()
	longest, which := time.Duration(0), "none"
	for host, d := range r.stuck.longest {
		if r.world.mayShare(host) == shared && d > longest {
			longest, which = d, r.world.hosts[host]
		}
	}
	r.t.Logf("hosts %s: no progress for at most %v (%s); %v is allowed", what, longest, which, most)
	if longest > most {
		r.t.Errorf("%s had no progress for %v; %v is allowed", which, longest, most)
	}
}

// judgePoliteness checks what the oracle has seen. So many parties may each be one request ahead of the
// cap of the shared network.
func (r *rig) judgePoliteness(parties int) {
	r.t.Helper()
	network := level{r.world.network().String(), r.cap}
	r.oracle.judgeCap(network, parties)
	r.oracle.mu.Lock()
	defer r.oracle.mu.Unlock()
	r.t.Logf("%d requests to the shared network, %d answers with Retry-After",
		len(r.oracle.left[network.name]),
		r.oracle.refused)
	f := &r.oracle.faults
	for _, text := range f.first {
		r.t.Error(text)
	}
	if f.count > 0 {
		r.t.Errorf("%d faults", f.count)
	}
}
