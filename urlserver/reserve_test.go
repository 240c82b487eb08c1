package urlserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/protocol"
	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

// world is daemons, without their sockets, that share a reservation under virtual time. Its web
// knows nothing of them but the requests.
type world struct {
	t     *testing.T
	rnd   *rand.Rand
	start time.Time
	now   time.Duration
	store *fallible
	nodes []*node
	last  map[string]time.Duration // time of the last request
	open  map[string]int
	sent  map[string]int // by DOC_ID
	alias bool           // all hosts are one group
	place netip.Addr     // that all hosts are at; the zero value: each daemon finds addresses of its own
	mixed bool           // the daemons' calls of the store interleave

	found func(nd *node, host string) netip.Addr // where a daemon finds a host; nil: see place

	cap    configs.Pace  // of the network that all hosts are in; the zero value: there is none
	ahead  float64       // requests beyond the cap's pace at the moment latest
	latest time.Duration // request
}

// fallible is a store that can be away.
type fallible struct {
	*memory.Store
	away bool
}

var errAway = errors.New("the store is away")

func (f *fallible) Do(ctx context.Context, calls []reservation.Call) []reservation.Answer {
	if !f.away {
		return f.Store.Do(ctx, calls)
	}
	answers := make([]reservation.Answer, len(calls))
	for i := range answers {
		answers[i].Err = errAway
	}
	return answers
}

func (f *fallible) Bind(ctx context.Context, b []reservation.Binding, ttl time.Duration) ([]reservation.Bound, error) {
	if f.away {
		return nil, errAway
	}
	return f.Store.Bind(ctx, b, ttl)
}

// node is a daemon with a spider.
type node struct {
	e       *engine.Engine
	cfg     configs.Config
	r       *Reserver
	spider  uint32
	batch   *engine.LeaseBatch
	calls   *actor        // it sends the requests, call by call; nil: it is done
	answer  time.Duration // when the answer to batch comes
	flights []flight
	frozen  time.Duration // until then
}

type flight struct {
	trans  []byte
	polite []string
	ends   time.Duration
}

const (
	worldLease = 10 * time.Second
	worldGap   = time.Second
)

func newWorld(t *testing.T, seed uint64, nodes int) *world {
	return newWorldOf(t, seed, nodes, nil, nil)
}

// newWorldOf makes a world. If h is not nil, its daemons report their holdings to it. If adjust is
// not nil, it changes their settings.
func newWorldOf(t *testing.T, seed uint64, nodes int, h *holdings, adjust func(*configs.Config)) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)), start: time.Unix(1_700_000_000, 0),
		last: map[string]time.Duration{}, open: map[string]int{}, sent: map[string]int{},
	}
	clock := func() time.Time { return w.start.Add(w.now) }
	w.store = &fallible{Store: memory.New(memory.Config{Penalty: time.Second, Now: clock})}
	for n := range nodes {
		cfg := configs.Default()
		cfg.ReqHostPerSec, cfg.Robots.Enabled, cfg.QueueCount = 1, false, 8
		cfg.TimeoutSpiderStatus = time.Hour
		if adjust != nil {
			adjust(&cfg)
		}
		nd := &node{cfg: cfg, r: &Reserver{Store: w.store, Lease: worldLease, Holder: fmt.Sprint(n),
			Log: zerolog.Nop(), now: clock}}
		if h != nil {
			h.fallible, h.now = w.store, func() time.Duration { return w.now }
			nd.r.Store = h
		}
		nd.e = engine.New(cfg, engine.Options{Generation: uint32(n), Lease: worldLease,
			Counted: h != nil, Cached: func(name []byte) (netip.Addr, error, bool) {
				switch {
				case w.found != nil:
					return w.found(nd, string(name)), nil, true
				case w.place.IsValid():
					return w.place, nil, true
				}
				return netip.AddrFrom4([4]byte{192, 0, byte(n), name[0]}), nil, true // another address for each daemon
			}})
		nd.spider = nd.e.Connected("spider")
		w.nodes = append(w.nodes, nd)
	}
	return w
}

// give makes a node hold documents, as if the index had offered them.
func (w *world) give(nd *node, ids, urls []string) {
	p := &engine.Prepared{}
	for i := range ids {
		p.Batch.AddFor([]byte(ids[i]), []byte(urls[i]), 0, "", []string{"", "odd"}[i%2])
	}
	p.Prepare()
	nd.e.Advance(w.now, w.start.Add(w.now))
	nd.e.Answered(p)
}

// round lets a node do all work that is due.
func (w *world) round(nd *node) {
	if nd.frozen > w.now {
		return
	}
	e := nd.e
	e.Advance(w.now, w.start.Add(w.now))
	var lines []engine.Line
	rest := nd.flights[:0]
	for _, f := range nd.flights {
		if f.ends > w.now {
			rest = append(rest, f)
			continue
		}
		for _, what := range f.polite {
			w.open[what]--
		}
		done := bytes.TrimRight(protocol.AppendDone(nil, f.trans, 200, protocol.NoRetryAfter), "\r\n")
		status, err := protocol.ParseStatus(done)
		if err != nil {
			w.t.Fatal(err)
		}
		lines = append(lines, engine.Line{Status: status})
	}
	nd.flights = rest
	e.Lines(nd.spider, lines)
	if nd.calls != nil {
		if nd.calls.step <- true; !<-nd.calls.stop {
			nd.calls, nd.answer = nil, w.now
		}
	}
	if nd.batch != nil && nd.calls == nil && nd.answer <= w.now {
		e.LeasesAnswered(nd.batch)
		nd.batch = nil
	}
	e.Step(nil)
	if c := e.Out.Leases; c != nil {
		e.Out.Leases = nil
		nd.batch = c
		w.answerLeases(nd, c)
	}
	e.Out.Ask, e.Out.Dirty = nil, nil
	e.Out.Outcomes.Reset()
	w.send(nd, e.Output(nd.spider, nil))
}

// answerLeases sends a node's lease requests to the store: at once, with a delayed answer, or call
// by call, one per round.
func (w *world) answerLeases(nd *node, c *engine.LeaseBatch) {
	if !w.mixed {
		nd.r.do(w.t.Context(), c)
		nd.answer = w.now + time.Duration(w.rnd.IntN(100))*time.Millisecond
		return
	}
	nd.calls = newActor()
	nd.r.Store = &stepped{w.store, nd.calls}
	nd.calls.start(func() { nd.r.do(w.t.Context(), c) })
	if !<-nd.calls.stop {
		nd.calls = nil
	}
}

// end stops all daemons. Then the store must know no host.
func (w *world) end() {
	for _, nd := range w.nodes {
		nd.r.Store = w.store
		nd.r.surrender(w.t.Context(), nd.e.ReleaseAll())
	}
	if s, err := w.store.Stats(w.t.Context()); err != nil || s.Hosts != 0 {
		w.t.Errorf("when all daemons have ended, the store has %+v, %v; want no hosts", s, err)
	}
}

// send makes the spider request the documents of lines, and checks each request.
func (w *world) send(nd *node, lines []byte) {
	if lines == nil {
		return
	}
	nd.e.Written(nd.spider)
	for line := range bytes.Lines(lines) {
		f := bytes.Fields(line)
		polite := w.polite(f)
		for _, what := range polite {
			w.judge(nd, what)
		}
		w.sent[string(f[1])]++
		w.judgeCap(nd)
		nd.flights = append(nd.flights, flight{
			trans: bytes.Clone(f[0]), polite: polite, ends: w.now + time.Duration(w.rnd.IntN(2500))*time.Millisecond,
		})
	}
}

// polite returns what the request of a line has to be polite to.
func (w *world) polite(f [][]byte) []string {
	host := string(bytes.Split(f[3], []byte("/"))[2])
	switch {
	case w.found != nil:
		return []string{host, string(f[2])}
	case w.alias:
		return []string{"site"}
	case w.place.IsValid():
		return []string{w.place.String()}
	}
	return []string{host}
}

// judge checks a request to a host, an address or a group.
func (w *world) judge(by *node, what string) {
	if w.open[what] > 0 {
		w.t.Errorf("%v: %s asks %v while %d requests are open", w.now, by.r.Holder, what, w.open[what])
	}
	if before, ok := w.last[what]; ok && w.now-before < worldGap {
		w.t.Errorf("%v: %s asks %v only %v after the last request", w.now, by.r.Holder, what, w.now-before)
	}
	w.open[what]++
	w.last[what] = w.now
}

// judgeCap checks a request against the cap of the network. Beyond the pace there may be one
// request of each daemon.
func (w *world) judgeCap(by *node) {
	if w.cap.Concurrent == 0 {
		return
	}
	open := 1
	for _, nd := range w.nodes {
		open += len(nd.flights)
	}
	w.ahead = max(0, w.ahead-w.cap.PerSec*(w.now-w.latest).Seconds()) + 1
	w.latest = w.now
	if open > w.cap.Concurrent {
		w.t.Errorf("%v: with a request of %s %d are open; want at most %d", w.now, by.r.Holder, open, w.cap.Concurrent)
	}
	if w.ahead > float64(len(w.nodes))+1e-6 {
		w.t.Errorf("%v: with a request of %s there are %.1f beyond the pace", w.now, by.r.Holder, w.ahead)
	}
}

// run lets a time pass.
func (w *world) run(span time.Duration) {
	for end := w.now + span; w.now < end; w.now += 10 * time.Millisecond {
		for _, n := range w.order() {
			w.round(w.nodes[n])
		}
	}
}

// order returns the nodes in the order of their turns: random, and not all of them, if calls
// interleave.
func (w *world) order() (nodes []int) {
	for n := range w.nodes {
		nodes = append(nodes, n)
	}
	if w.mixed {
		w.rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		nodes = nodes[:1+w.rnd.IntN(len(nodes))]
	}
	return nodes
}

func docsOf(from, n, hosts int) (ids, urls []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(from+i))
		urls = append(urls, fmt.Sprintf("http://%c.example/%d", 'a'+i%hosts, from+i))
	}
	return ids, urls
}

// TestDaemonsShareTheirPoliteness runs three daemons with documents of the same hosts, which are
// more than the slots.
func TestDaemonsShareTheirPoliteness(t *testing.T) {
	const hosts, docs = 12, 120
	for seed := range uint64(3) {
		w := newWorld(t, seed, 3)
		for n, nd := range w.nodes {
			ids, urls := docsOf(n*docs, docs, hosts)
			w.give(nd, ids, urls)
		}
		w.run(5 * time.Minute)
		for id := range 3 * docs {
			if w.sent[fmt.Sprint(id)] != 1 {
				t.Errorf("seed %d: document %d was sent %d times in five minutes; want once", seed, id,
					w.sent[fmt.Sprint(id)])
			}
		}
		for _, nd := range w.nodes {
			if held := nd.e.Stats().Leases; held != 0 {
				t.Errorf("seed %d: %s keeps %d leases with nothing to send", seed, nd.r.Holder, held)
			}
		}
		w.end()
	}
}

// TestFrozenDaemonSendsNothingOnALostLease freezes a daemon for longer than its leases, again and
// again.
func TestFrozenDaemonSendsNothingOnALostLease(t *testing.T) {
	const hosts, docs = 6, 60
	w := newWorld(t, 7, 2)
	for n, nd := range w.nodes {
		ids, urls := docsOf(n*docs, docs, hosts)
		w.give(nd, ids, urls)
	}
	for range 10 {
		w.run(7 * time.Second)
		nd := w.nodes[0]
		if len(nd.flights) == 0 { // open requests may outlive the lease: the daemon cannot end them
			nd.frozen = w.now + 2*worldLease
		}
		w.run(15 * time.Second)
	}
	w.run(5 * time.Minute)
	for id := range 2 * docs {
		if w.sent[fmt.Sprint(id)] != 1 {
			t.Errorf("document %d was sent %d times; want once", id, w.sent[fmt.Sprint(id)])
		}
	}
}

// TestAliasIsOneGroup: an operator's alias puts hosts at different addresses into one group.
func TestAliasIsOneGroup(t *testing.T) {
	const docs = 20
	w := newWorld(t, 3, 2)
	w.alias = true
	if err := w.store.SetAlias(t.Context(), "site", []string{"a.example", "b.example", "c.example"}); err != nil {
		t.Fatal(err)
	}
	for n, nd := range w.nodes {
		ids, urls := docsOf(n*docs, docs, 3)
		w.give(nd, ids, urls)
	}
	w.run(5 * time.Minute)
	for id := range 2 * docs {
		if w.sent[fmt.Sprint(id)] != 1 {
			t.Errorf("document %d was sent %d times; want once", id, w.sent[fmt.Sprint(id)])
		}
	}
}

// ruled applies rules to a node.
func (w *world) ruled(nd *node, rules ...configs.HostRule) {
	cfg := nd.cfg
	cfg.Rules = rules
	nd.e.Advance(w.now, w.start.Add(w.now))
	nd.e.Reconfigure(cfg)
}

// TestGroupOfARuleIsAnAlias: rules put hosts at different addresses into one group in two daemons,
// before anything is sent, and while both fetch from the hosts.
func TestGroupOfARuleIsAnAlias(t *testing.T) {
	const docs = 30
	rule := configs.HostRule{Hosts: []string{"*.example"}, Group: "site"}
	for _, before := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second, 12 * time.Second} {
		w := newWorld(t, 3, 2)
		for n, nd := range w.nodes {
			ids, urls := docsOf(n*docs, docs, 3)
			w.give(nd, ids, urls)
		}
		w.run(before)
		for _, nd := range w.nodes {
			w.ruled(nd, rule)
		}
		w.alias = true
		w.run(10 * time.Minute)
		alias, hosts, err := w.store.GetAlias(t.Context(), "site")
		if err != nil || alias != "site" || fmt.Sprint(hosts) != "[a.example b.example c.example]" {
			t.Errorf("rules after %v: the alias is %s %q, %v; want site with three hosts", before, alias, hosts, err)
		}
		for id := range 2 * docs {
			if w.sent[fmt.Sprint(id)] != 1 {
				t.Errorf("rules after %v: document %d was sent %d times; want once", before, id, w.sent[fmt.Sprint(id)])
			}
		}
	}
}

// TestGroupOfARuleSharesItsAddress: some hosts of an address are one site by a rule, which has a lease of
// its own. One daemon has documents of the site and another one of its neighbour, or both have all
// documents. Together they keep the pace of the address, also where the address is a host of the site.
func TestGroupOfARuleSharesItsAddress(t *testing.T) {
	for _, site := range [][]string{{"a.example", "b.example"}, {"a.example", "192.0.2.1"}} {
		for n := range 8 {
			apart, counted, alias := n&1 > 0, n&2 > 0, n&4 > 0
			t.Run(fmt.Sprintf("%s, apart %v, counted %v, by alias %v", site, apart, counted, alias),
				func(t *testing.T) { testSiteAtAnAddress(t, site, apart, counted, alias) })
		}
	}
}

// testSiteAtAnAddress lets two daemons crawl hosts at one address. An alias or a rule makes some of them a
// site.
func testSiteAtAnAddress(t *testing.T, site []string, apart, counted, alias bool) {
	const docs = 90
	var h *holdings
	if counted {
		h = newHoldings()
	}
	w := newWorldOf(t, 3, 2, h, func(cfg *configs.Config) {
		if !alias {
			cfg.Rules = []configs.HostRule{{Hosts: site, Group: "site"}}
		}
	})
	w.place = netip.MustParseAddr("192.0.2.1")
	if alias {
		if err := w.store.SetAlias(t.Context(), "site", site); err != nil {
			t.Fatal(err)
		}
	}
	for n, nd := range w.nodes {
		var ids, urls []string
		for i := range docs {
			if of := i % 3; apart && n == of/2 || !apart && n == i/3%2 {
				ids = append(ids, fmt.Sprint(i))
				urls = append(urls, fmt.Sprintf("http://%s/%d", append(site, "c.example")[of], i))
			}
		}
		w.give(nd, ids, urls)
	}
	w.run(10 * time.Minute)
	for id := range docs {
		if w.sent[fmt.Sprint(id)] != 1 {
			t.Errorf("document %d was sent %d times in ten minutes; want once", id, w.sent[fmt.Sprint(id)])
		}
	}
	for _, nd := range w.nodes {
		if held := nd.e.Stats().Leases; held != 0 {
			t.Errorf("%s keeps %d leases with nothing to send", nd.r.Holder, held)
		}
	}
	if !counted {
		w.end()
	}
}

// TestAliasGoesBeforeARule: a host is in an operator's alias, and a rule names another group for
// it.
func TestAliasGoesBeforeARule(t *testing.T) {
	const docs = 10
	w := newWorld(t, 4, 2)
	w.alias = true
	if err := w.store.SetAlias(t.Context(), "old", []string{"a.example", "b.example"}); err != nil {
		t.Fatal(err)
	}
	for n, nd := range w.nodes {
		w.ruled(nd, configs.HostRule{Hosts: []string{"b.example"}, Group: "site"})
		ids, urls := docsOf(n*docs, docs, 2)
		w.give(nd, ids, urls)
	}
	w.run(5 * time.Minute)
	if len(w.sent) != 2*docs {
		t.Errorf("%d documents were sent; want %d", len(w.sent), 2*docs)
	}
	if alias, _, err := w.store.GetAlias(t.Context(), "b.example"); err != nil || alias != "old" {
		t.Errorf("b.example is in %s, %v; want old", alias, err)
	}
}

// TestNothingIsSentWhileTheReservationIsAway: leases end while the store does not answer.
func TestNothingIsSentWhileTheReservationIsAway(t *testing.T) {
	const hosts, docs = 8, 400
	w := newWorld(t, 5, 2)
	for n, nd := range w.nodes {
		ids, urls := docsOf(n*docs, docs, hosts)
		w.give(nd, ids, urls)
	}
	w.run(5 * time.Second)
	w.store.away = true
	w.run(worldLease)
	before := len(w.sent)
	if before <= hosts {
		t.Fatalf("%d documents were sent in 15 s; want more than %d", before, hosts)
	}
	w.run(30 * time.Second)
	if n := len(w.sent) - before; n != 0 {
		t.Errorf("%d documents were sent on leases that had ended", n)
	}
	w.store.away = false
	w.run(15 * time.Minute)
	for id := range 2 * docs {
		if w.sent[fmt.Sprint(id)] != 1 {
			t.Errorf("document %d was sent %d times; want once", id, w.sent[fmt.Sprint(id)])
		}
	}
}
