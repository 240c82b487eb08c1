package urlserver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
	"urlserver/reservation/redis"
	"urlserver/urlserver/engine"
)

// TestSlicesAreLeased has two daemons lease a slice of a shared network's cap in turn, in each
// store. A store that counts documents gets no report of it.
func TestSlicesAreLeased(t *testing.T) {
	stores := map[string]func(t *testing.T) reservation.Store{
		"memory": func(*testing.T) reservation.Store { return memory.New(memory.Config{Penalty: time.Second}) },
		"redis":  func(t *testing.T) reservation.Store { return redisStore(t, redistest.Start(t).Addr()) },
		"grpc":   serviceStore,
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) { testSlice(t, store(t)) })
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

func testSlice(t *testing.T, store reservation.Store) {
	const slice = "0.0123456789abcdef.slice.invalid"
	ctx := t.Context()
	reserver := func(name string) *Reserver {
		return &Reserver{Store: store, Lease: time.Minute, Holder: name, Log: zerolog.Nop()}
	}
	ask := func(r *Reserver, token uint64) *engine.LeaseRequest {
		c := &engine.LeaseBatch{}
		request := engine.LeaseRequest{Host: slice, Slice: true, Token: token}
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
	a.do(ctx, &engine.LeaseBatch{Releases: []engine.Release{{Host: slice, Slice: true, Token: first.Token}}})
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
	b.surrender(ctx, []engine.Release{{Host: slice, Slice: true, Token: second.Token, Delete: true}})
	if s, err := store.Stats(ctx); err != nil || s.Hosts != 0 {
		t.Errorf("when all daemons have ended, the store has %+v, %v; want nothing", s, err)
	}
}

// TestSlicesInRedisLeaveNoCount looks for what a slice leaves in the keys of crawl host groups.
func TestSlicesInRedisLeaveNoCount(t *testing.T) {
	server := redistest.Start(t)
	testSlice(t, redisStore(t, server.Addr()))
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
