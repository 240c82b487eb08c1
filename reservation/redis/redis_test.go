package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation/reservationtest"
)

var (
	//go:embed testdata/clock.lua
	testClock string
	//go:embed testdata/advance.lua
	testAdvance string
)

var prefixes atomic.Int64 // one for each test, so that tests can share a server

// patient returns s with longer timeouts, for a busy machine on which Redis may stand still for
// seconds.
func patient(s *Store) *Store {
	s.dial, s.wait, s.replica = 5*time.Minute, 5*time.Minute, 5*time.Minute
	return s
}

// bench is a store with a virtual clock, and its own prefix.
func bench(t *testing.T, many int, addrs ...string) reservationtest.Bench {
	t.Helper()
	prefix := fmt.Sprintf("t%d:", prefixes.Add(1))
	s := patient(newStore(Config{Addrs: addrs, Prefix: prefix, Penalty: reservationtest.Penalty}, testClock))
	t.Cleanup(s.Close)
	var now atomic.Int64
	advance := func(d time.Duration) {
		n, err := do(t, s, []string{"EVAL", testAdvance, "1"}, s.keys[0], prefix, decimal(d.Milliseconds())).AsInt64()
		if err != nil {
			t.Fatalf("advance: %v", err)
		}
		now.Store(n)
	}
	advance(1_700_000_000_000 * time.Millisecond)
	return reservationtest.Bench{
		Store: s, Many: many, Advance: advance,
		Now: func() time.Time { return time.UnixMilli(now.Load()) },
		Lose: func(t *testing.T, host string) {
			do(t, s, []string{"ZREM"}, prefix+"chg_wait{chg}", host)
			do(t, s, []string{"ZREM"}, prefix+"chg_busy{chg}", host)
			do(t, s, []string{"LREM"}, prefix+"chg_ready{chg}", "0", host)
		},
	}
}

// do sends a command, as redis-cli does.
func do(t testing.TB, s *Store, command []string, key string, args ...string) rueidis.RedisResult {
	t.Helper()
	c, err := s.connected()
	if err != nil {
		t.Fatal(err)
	}
	result := c.Do(context.Background(), c.B().Arbitrary(command...).Keys(key).Args(args...).Build())
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s %s: %v", command[0], key, err)
	}
	return result
}

func TestStore(t *testing.T) {
	addr := redistest.Start(t).Addr()
	reservationtest.Run(t, func(t *testing.T) reservationtest.Bench {
		b := bench(t, 100_000, addr)
		// The janitor scans all keys of a server, also those of other tests.
		t.Cleanup(func() { do(t, b.Store.(*Store), []string{"FLUSHALL"}, "SYNC") })
		return b
	})
}

// TestDeadlineHolds: a lone caller waits for a Redis that hangs no longer than its context lasts.
func TestDeadlineHolds(t *testing.T) {
	server := redistest.Start(t)
	s := New(Config{Addrs: []string{server.Addr()}})
	defer s.Close()
	if _, err := s.AddHost(t.Context(), "a.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Thaw()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.TryReserve(ctx, "a.test", time.Second, "me")
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took >= writeTimeout {
		t.Errorf("TryReserve of a Redis that hangs: %v after %v; want a deadline, before %v", err, took, writeTimeout)
	}
}
