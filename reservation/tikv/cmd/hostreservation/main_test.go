package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/cli"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/tikv/etcd/etcdtest"
	"urlserver/reservation/tikv/tikvtest"
)

// patience is for what takes a moment on an idle machine; a client's call without a deadline ends
// sooner.
const patience = 5 * time.Minute

// serving is a log that says where the service listens.
type serving struct {
	once sync.Once
	addr chan string
}

func (s *serving) Write(p []byte) (int, error) { // zerolog writes a line at once, and lines one by one
	var entry struct{ Message, Address string }
	if json.Unmarshal(p, &entry) == nil && entry.Message == "serving" {
		s.once.Do(func() { s.addr <- entry.Address })
	}
	return len(p), nil
}

// start runs serve until the test ends, and returns a client of it.
func start(t *testing.T, args ...string) *grpcclient.Store {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log, ended := &serving{addr: make(chan string, 1)}, make(chan error, 1)
	go func() {
		ended <- cli.Run(ctx, stores(), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), nil,
			io.Discard, log)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case addr := <-log.addr:
		store, err := grpcclient.New(grpcclient.Config{Addrs: []string{addr}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	case err := <-ended:
		ended <- err
		t.Fatalf("serve ended: %v", err)
	case <-time.After(patience):
		t.Fatal("serve does not say where")
	}
	return nil
}

// share has two services over one store give out a host once.
func share(t *testing.T, args ...string) {
	first, second := start(t, args...), start(t, args...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if added, err := first.AddHost(ctx, "a.test", time.Time{}); err != nil || !added {
		t.Fatalf("AddHost = %v, %v", added, err)
	}
	got, err := second.ReserveNextHost(ctx, time.Hour, 10, "me")
	for deadline := time.Now().Add(5 * time.Minute); errors.Is(err, reservation.ErrNotNow) &&
		time.Now().Before(deadline); {
		got, err = second.ReserveNextHost(ctx, time.Hour, 10, "me") // in etcd its clock may be a tick behind
	}
	if err != nil || len(got) != 1 || got[0].Host != "a.test" {
		t.Fatalf("ReserveNextHost = %+v, %v; want a.test", got, err)
	}
	if _, err := first.TryReserve(ctx, "a.test", time.Hour, "you"); !errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve by the other service = %v; want ErrNotNow", err)
	}
	if x, err := first.Explain(ctx, "a.test"); err != nil || x.State != reservation.Busy || x.Holder != "me" {
		t.Errorf("Explain = %+v, %v; want busy by me", x, err)
	}
	if err := first.ReleaseHost(ctx, "a.test", got[0].Token, time.Time{}); err != nil {
		t.Errorf("ReleaseHost: %v", err)
	}
}

func TestServeEtcd(t *testing.T) {
	share(t, "--store", "etcd", "--addrs", strings.Join(etcdtest.Start(t, 1).Addrs(), ","), "--prefix", "x/")
}

func TestServeTiKV(t *testing.T) {
	share(t, "--store", "tikv", "--addrs", tikvtest.Start(t).Addr(), "--prefix", "x/")
}

// TestStoreAway: a service whose store is not there serves, and says so to each caller.
func TestStoreAway(t *testing.T) {
	const away = "127.0.0.1:1"
	for _, kind := range []string{"tikv", "etcd"} {
		store := start(t, "--store", kind, "--addrs", away, "--janitor", "1h")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := store.AddHost(ctx, "a.test", time.Time{})
		if err == nil || errors.Is(err, reservation.ErrInvalid) || !strings.Contains(err.Error(), away) {
			t.Errorf("AddHost over %s = %v; want an error that names %s", kind, err, away)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range []string{"", "serve --store memory", "serve --store etcd --addrs=", "seeds"} {
		err := cli.Run(t.Context(), stores(), strings.Fields(args), nil, io.Discard, io.Discard)
		if cli.ExitStatus(err) != 2 {
			t.Errorf("%q: %v; want a fault of usage", args, err)
		}
	}
}
