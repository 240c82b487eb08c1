package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

// TestBindingsOutliveTheirRedis: a binding that was answered is not lost when a replica takes over.
// A replica that receives nothing makes the call fail. Without a replica nothing waits.
func TestBindingsOutliveTheirRedis(t *testing.T) {
	first := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	s := realStore(t, time.Second, first.Addr())
	bind := func(s *Store, host, group string) (string, error) {
		bound, err := s.Bind(t.Context(), []reservation.Binding{{Host: host, Group: group}}, time.Hour)
		if err != nil {
			return "", err
		}
		return bound[0].Group, nil
	}
	if _, err := bind(s, "alone.test", "192.0.2.1"); err != nil {
		t.Fatalf("Bind without a replica: %v", err)
	}
	replica := redistest.StartReplica(t, first)
	if _, err := bind(s, "a.test", "192.0.2.1"); err != nil {
		t.Fatalf("Bind with a replica: %v", err)
	}
	s.replica = 300 * time.Millisecond
	replica.Freeze()
	if _, err := bind(s, "b.test", "192.0.2.1"); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("Bind while the replica receives nothing: %v; want an error that names it", err)
	}
	again := realStore(t, time.Second, first.Addr()) // on other connections; it finds the host in the alias
	again.replica = s.replica
	for i, s := range []*Store{s, again} {
		if _, err := s.JoinAlias(t.Context(), "shop", []string{"c.test"}); err == nil {
			t.Errorf("JoinAlias %d while the replica receives nothing has no error", i+1)
		}
	}
	replica.Thaw()
	s.replica = time.Minute
	if _, err := bind(s, "b.test", "192.0.2.1"); err != nil {
		t.Fatalf("Bind when the replica goes on: %v", err)
	}
	first.Kill()
	replica.CLI("REPLICAOF", "NO", "ONE")
	other := realStore(t, time.Second, replica.Addr())
	for _, host := range []string{"alone.test", "a.test", "b.test"} {
		if group, err := bind(other, host, "192.0.2.2"); err != nil || group != "192.0.2.1" {
			t.Errorf("%s is in group %q after the fail-over (%v); want 192.0.2.1", host, group, err)
		}
	}
}

// TestAnotherRedisThatKnowsTheScripts: when a connection ends, the next Redis may be another one that
// has run the scripts before, such as a master that was replaced and comes back. After concurrent calls
// the client replaces a connection without an error.
func TestAnotherRedisThatKnowsTheScripts(t *testing.T) {
	t.Run("one caller", func(t *testing.T) { anotherRedis(t, func(*Store) {}) })
	t.Run("concurrent callers", func(t *testing.T) {
		anotherRedis(t, func(s *Store) {
			var callers sync.WaitGroup
			for n := range 16 {
				callers.Go(func() {
					for range 20 {
						if _, err := s.AddHost(t.Context(), fmt.Sprintf("h%d.test", n), time.Time{}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			callers.Wait()
		})
	})
}

// startWithLease starts a Redis and a store of it, with the hosts free.test and held.test. The latter is
// leased for an hour.
func startWithLease(t *testing.T) (*redistest.Server, *Store) {
	t.Helper()
	server := redistest.Start(t)
	s, ctx := realStore(t, time.Second, server.Addr()), t.Context()
	for _, host := range []string{"held.test", "free.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TryReserve(ctx, "held.test", time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	return server, s
}

// becomeAnother makes a Redis look like another process that has run the scripts, and ends the connections
// to it.
func becomeAnother(t *testing.T, server *redistest.Server, s *Store) {
	t.Helper()
	do(t, s, []string{"SET"}, "p:chg_run{chg}", "another")
	server.CLI("CLIENT", "KILL", "TYPE", "normal")
}

func anotherRedis(t *testing.T, before func(*Store)) {
	server, s := startWithLease(t)
	before(s)
	becomeAnother(t, server, s)
	if err := answered(t, func() error {
		_, err := s.TryReserve(t.Context(), "free.test", time.Hour, "")
		return err
	}); !errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve at another Redis, within a lease: %v; want ErrNotNow", err)
	}
}

// TestAnotherRedisInTheMiddle: the connection of a call of many scripts ends. The scripts that follow go to
// the next Redis, which is told of the store first.
func TestAnotherRedisInTheMiddle(t *testing.T) {
	server, s := startWithLease(t)
	calls := make([]reservation.Call, runBatch*callBatch+1)
	for n := range calls {
		calls[n] = reservation.Call{Verb: reservation.TryReserve, Host: fmt.Sprintf("h%d.test", n), Lease: time.Hour}
	}
	calls[len(calls)-1].Host = "free.test"
	becomeAnother(t, server, s)
	answers := s.Do(context.Background(), calls)
	if first, last := answers[0].Err, answers[len(calls)-1].Err; first == nil || last == nil {
		t.Errorf("the first of %d calls: %v, the last: %v; want two errors", len(calls), first, last)
	}
}
