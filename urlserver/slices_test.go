package urlserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
	"urlserver/reservation/redis"
	"urlserver/urlserver/engine"
)

// TestSlicesAreLeased: two daemons lease a slice of a shared network's cap in turn, in each store.
// A store that counts documents gets no report of it.
func TestSlicesAreLeased(t *testing.T) {
	stores := map[string]func(t *testing.T) reservation.Store{
		"memory": func(*testing.T) reservation.Store { return memory.New(memory.Config{Penalty: time.Second}) },
		"redis":  func(t *testing.T) reservation.Store { return redisStore(t, redistest.Start(t).Addr()) },
		"grpc":   serviceStore,
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) { testSlice(t, store(t), slice) })
		t.Run(name+", an address for a site", func(t *testing.T) { testSlice(t, store(t), "192.0.2.1") })
	}
}

func redisStore(t *testing.T, addr string) *redis.Store {
	s := redis.New(redis.Config{Addrs: []string{addr}, Penalty: time.Second})
	t.Cleanup(s.Close)
	return s
}

// serviceStore is a client of a host reservation service.
func serviceStore(t *testing.T) reservation.Store {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	s := grpcserver.New(grpcserver.Config{Store: memory.New(memory.Config{Penalty: time.Second})})
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	c, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const slice = "0.0123456789abcdef.slice.invalid"

// testSlice leases what is leased under a name and has no documents.
func testSlice(t *testing.T, store reservation.Store, name string) {
	ctx := t.Context()
	reserver := func(holder string) *Reserver {
		return &Reserver{Store: store, Lease: time.Minute, Holder: holder, Log: zerolog.Nop()}
	}
	ask := func(r *Reserver, token uint64) *engine.LeaseRequest {
		c := &engine.LeaseBatch{}
		request := engine.LeaseRequest{Host: name, Slice: true, Token: token}
		if token == 0 {
			c.Acquires = []engine.LeaseRequest{request}
			r.do(ctx, c)
			return &c.Acquires[0]
		}
		c.Extends = []engine.LeaseRequest{request}
		r.do(ctx, c)
		return &c.Extends[0]
	}
	a, b := reserver("a"), reserver("b")
	first := ask(a, 0)
	if first.Answer != engine.Granted || first.Token == 0 {
		t.Fatalf("a free slice: answer %d, token %d; want it granted", first.Answer, first.Token)
	}
	if got := ask(b, 0); got.Answer != engine.Denied {
		t.Errorf("a slice of another daemon: answer %d; want it denied", got.Answer)
	}
	if got := ask(a, first.Token); got.Answer != engine.Granted {
		t.Errorf("its lease extended: answer %d; want it granted", got.Answer)
	}
	a.do(ctx, &engine.LeaseBatch{Releases: []engine.Release{{Host: name, Slice: true, Token: first.Token}}})
	second := ask(b, 0)
	if second.Answer != engine.Granted || second.Token <= first.Token {
		t.Fatalf("a released slice: answer %d, token %d after %d; want it granted with a greater one",
			second.Answer, second.Token, first.Token)
	}
	if got := ask(a, first.Token); got.Answer != engine.Denied {
		t.Errorf("a former lease extended: answer %d; want it denied", got.Answer)
	}
	a.clean(ctx, time.Now().Add(time.Hour)) // of what it released and another daemon has by now
	if got := ask(b, second.Token); got.Answer != engine.Granted {
		t.Errorf("the lease extended after the former holder has cleaned up: answer %d; want it granted", got.Answer)
	}
	a.surrender(ctx, nil)
	b.surrender(ctx, []engine.Release{{Host: name, Slice: true, Token: second.Token, Delete: true}})
	if s, err := store.Stats(ctx); err != nil || s.Hosts != 0 {
		t.Errorf("when all daemons have ended, the store has %+v, %v; want nothing", s, err)
	}
}

// TestSlicesInRedisLeaveNoCount looks for what a slice leaves in the keys of crawl host groups.
func TestSlicesInRedisLeaveNoCount(t *testing.T) {
	server := redistest.Start(t)
	testSlice(t, redisStore(t, server.Addr()), slice)
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	total, err := c.Do(t.Context(), c.B().Get().Key("chg_total{chg}").Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) || total != 0 {
		t.Errorf("chg_total{chg} is %d, %v; want 0", total, err)
	}
	crawls, err := c.Do(t.Context(), c.B().Hgetall().Key("chg_exec{chg}").Build()).AsStrMap()
	if err != nil || len(crawls) != 0 {
		t.Errorf("chg_exec{chg} is %v, %v; want it empty", crawls, err)
	}
}

const (
	networkSites = 300
	networkDocs  = 8 // of each site, for each daemon
)

// networkRule puts all hosts of a world on one shared network.
func networkRule(cap configs.Pace) configs.HostRule {
	return configs.HostRule{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.0.0/16")}, Shared: true,
		PerSec: cap.PerSec, Concurrent: cap.Concurrent}
}

// newNetwork makes a world of four daemons with documents of many sites. All four have documents of
// one site in five.
func newNetwork(t *testing.T, rules ...configs.HostRule) *world {
	w := newWorldOf(t, 1, 4, nil, func(cfg *configs.Config) {
		cfg.QueueCount, cfg.Rules = networkSites, rules
	})
	for n, nd := range w.nodes {
		var ids, urls []string
		for i := range networkSites * networkDocs {
			site := fmt.Sprintf("s%d-%d", i%networkSites, n)
			if i%networkSites < networkSites/5 {
				site = fmt.Sprintf("s%d", i%networkSites)
			}
			ids = append(ids, fmt.Sprint(n, ".", i))
			urls = append(urls, fmt.Sprintf("http://%s.example/%d.%d", site, n, i))
		}
		w.give(nd, ids, urls)
	}
	return w
}

// TestDaemonsShareANetwork: four daemons keep the pace of each site of a shared network, and
// together the network's cap. They use nine tenths of the cap.
func TestDaemonsShareANetwork(t *testing.T) {
	for _, cap := range []configs.Pace{{PerSec: 5, Concurrent: 100}, {PerSec: 500, Concurrent: 20}} {
		full := min(cap.PerSec, float64(cap.Concurrent)/1.25) // a fetch takes 1.25 s on average
		w := newNetwork(t, networkRule(cap))
		w.cap = cap
		w.run(4 * worldLease)
		before := len(w.sent)
		w.run(8 * worldLease)
		got := float64(len(w.sent)-before) / (8 * worldLease).Seconds()
		t.Logf("%v: %.1f requests a second", cap, got)
		if got < 0.9*full {
			t.Errorf("%v: %.1f requests a second; want at least 0.9 of %.1f", cap, got, full)
		}
		x, _ := w.nodes[0].e.Explain([]byte("s299-0.example"))
		if !strings.Contains(x.Why, "of the 20 slices into which") {
			t.Errorf("%v: explain: %q; want it to tell this daemon's share of 20 slices", cap, x.Why)
		}
		if s, err := w.store.Stats(t.Context()); err != nil || s.Aliases != 0 {
			t.Errorf("%v: the store has %d aliases, %v; want none, as they stay for ever", cap, s.Aliases, err)
		}
	}
}

// TestNetworkBecomesShared: changed rules put hosts on a shared network while the hosts are bound
// to their addresses. They go on at once.
func TestNetworkBecomesShared(t *testing.T) {
	w := newNetwork(t)
	w.run(3 * worldLease)
	cap := configs.Pace{PerSec: 5, Concurrent: 20}
	for _, nd := range w.nodes {
		w.ruled(nd, networkRule(cap))
	}
	w.run(3 * time.Second) // until what was open has ended
	w.cap = cap
	before := len(w.sent)
	w.run(4 * worldLease)
	if n := len(w.sent) - before; n < 20 {
		t.Errorf("%d requests in four leases while the bindings hold; want at least 20", n)
	}
	w.run(10 * worldLease) // until the bindings have ended, and the cap is divided
	before = len(w.sent)
	w.run(8 * worldLease)
	if got := float64(len(w.sent)-before) / (8 * worldLease).Seconds(); got < 0.9*cap.PerSec {
		t.Errorf("%.1f requests a second; want at least 0.9 of %v", got, cap.PerSec)
	}
	if s, err := w.store.Stats(t.Context()); err != nil || s.Aliases != 0 {
		t.Errorf("the store has %d aliases, %v; want none", s.Aliases, err)
	}
}

// TestNetworkIsSharedNoMore: the rule goes that puts hosts on a shared network. Nothing is sent to
// a host before it is in the group of its address.
func TestNetworkIsSharedNoMore(t *testing.T) {
	w := newNetwork(t, networkRule(configs.Pace{PerSec: 5, Concurrent: 20}))
	w.run(3 * worldLease)
	for _, nd := range w.nodes {
		w.ruled(nd)
	}
	for lease := range 14 {
		before := len(w.sent)
		w.run(worldLease)
		x, _ := w.nodes[0].e.Explain([]byte("s299-0.example"))
		if lease == 1 && !strings.Contains(x.Why, "until its binding ends") {
			t.Errorf("explain: %q; want it to name the binding", x.Why)
		}
		// Each daemon finds all hosts at one address, which it may ask once a second.
		if n := len(w.sent) - before; n > len(w.nodes)*int(worldLease/worldGap+1) {
			t.Errorf("%v: %d requests in a lease; want at most one a second to each of %d addresses",
				w.now, n, len(w.nodes))
		}
	}
	before := len(w.sent)
	w.run(2 * worldLease)
	if n := len(w.sent) - before; n < 10*len(w.nodes) {
		t.Errorf("%d requests in two leases after the bindings have ended; want at least 10 to each of %d addresses",
			n, len(w.nodes))
	}
}

// TestDaemonsDisagreeOnTheNetwork: two of four daemons find the hosts on a shared network, and two
// find them at other addresses. No host is asked by two daemons at once.
func TestDaemonsDisagreeOnTheNetwork(t *testing.T) {
	const hosts, docs = 12, 300
	rule := networkRule(configs.Pace{PerSec: 5, Concurrent: 20})
	rule.Networks = []netip.Prefix{netip.MustParsePrefix("192.0.0.0/23")}
	for seed := range uint64(3) {
		w := newWorldOf(t, seed, 4, nil, func(cfg *configs.Config) {
			cfg.ReqHostPerSec = 0.3 // so that a group is released between two requests
			cfg.Rules = []configs.HostRule{rule}
		})
		for n := range 200 {
			for i, nd := range w.nodes {
				ids, urls := docsOf((n*len(w.nodes)+i)*docs, 1+w.rnd.IntN(hosts), hosts)
				w.give(nd, ids, urls)
			}
			w.run(time.Duration(w.rnd.IntN(4)) * time.Second)
		}
		if len(w.sent) < 500 {
			t.Errorf("seed %d: %d requests; want at least 500", seed, len(w.sent))
		}
	}
}

// TestSlicesOfADeadDaemonAreForgotten: another daemon deletes what a daemon that died knew, once the
// lease has ended, and nothing that somebody has.
func TestSlicesOfADeadDaemonAreForgotten(t *testing.T) {
	const held = "1.0123456789abcdef.slice.invalid"
	store := redisStore(t, redistest.Start(t).Addr())
	ctx := t.Context()
	dead := &Reserver{Store: store, Lease: time.Second, Holder: "dead", Log: zerolog.Nop()}
	lives := &Reserver{Store: store, Lease: time.Minute, Holder: "lives", Log: zerolog.Nop()}
	for r, name := range map[*Reserver]string{dead: slice, lives: held} {
		redistest.Eventually(t, "the lease of "+name, func() bool { // a slow answer outlives the lease
			c := &engine.LeaseBatch{Acquires: []engine.LeaseRequest{{Host: name, Slice: true}}}
			r.do(ctx, c)
			return c.Acquires[0].Answer == engine.Granted
		})
	}
	now := time.Now()
	other := &Reserver{Store: store, Lease: time.Minute, Holder: "other", Log: zerolog.Nop(),
		now: func() time.Time { return now }}
	redistest.Eventually(t, "the end of the lease, and of the slice", func() bool {
		other.do(ctx, &engine.LeaseBatch{Forgets: []string{slice, held}})
		now = now.Add(addedLeases * other.Lease)
		other.do(ctx, &engine.LeaseBatch{})
		if err := store.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := store.Stats(ctx)
		return err == nil && s.Hosts == 1
	})
	if x, err := store.Explain(ctx, held); err != nil || x.Holder != "lives" {
		t.Errorf("%s: %+v, %v; want its holder to have it still", held, x, err)
	}
}
