package redis

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
)

// TestAway stops and starts Redis. Calls fail meanwhile, and leases are still there afterwards.
func TestAway(t *testing.T) {
	const longest, penalty = 3 * time.Second, time.Second
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s, ctx := realStore(t, penalty, server.Addr()), t.Context()
	for _, host := range []string{"held.test", "free.test"} {
		if _, err := s.AddHost(ctx, host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	asked := time.Now()
	held, err := s.TryReserve(ctx, "held.test", longest, "")
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	// The first calls may end with the connection, the others fail at once.
	redistest.Eventually(t, "an error while Redis is away", func() bool {
		_, err = s.TryReserve(ctx, "free.test", longest, "")
		return err != nil
	})
	if isAnswer(err) {
		t.Errorf("TryReserve while Redis is away = %v; want an error of its own", err)
	}
	if _, err := s.ReserveNextHost(ctx, longest, 1, ""); err == nil {
		t.Error("ReserveNextHost while Redis is away has no error")
	}
	if !server.Restart() {
		t.Fatal("redis-server does not start again")
	}
	var free reservation.Reservation
	redistest.Eventually(t, "a reservation after Redis came back", func() bool {
		free, err = s.TryReserve(ctx, "free.test", longest, "")
		return err == nil
	})
	if sooner := time.Until(asked.Add(longest + penalty)); sooner > time.Millisecond { // Redis counts milliseconds
		t.Errorf("new reservations went on %v before the penalty of the longest lease; others may have "+
			"been lost with the restart", sooner)
	}
	if free.Token < held.Token+1<<20 {
		t.Errorf("token %d after %d; want one well above those that may have been lost", free.Token,
			held.Token)
	}
	if err := answered(t, func() error {
		return s.ReleaseHost(ctx, "held.test", held.Token, time.Time{})
	}); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("ReleaseHost after the lease = %v; want ErrStale", err)
	}
}

// isAnswer reports whether a call ended with a result or an error that the store documents.
func isAnswer(err error) bool {
	return err == nil || slices.ContainsFunc(
		[]error{reservation.ErrNotNow, reservation.ErrStale, reservation.ErrUnknown, reservation.ErrInvalid},
		func(known error) bool { return errors.Is(err, known) })
}

// answered repeats a call until Redis answers: any of several broken connections may fail a call.
func answered(t *testing.T, call func() error) (err error) {
	t.Helper()
	redistest.Eventually(t, "an answer", func() bool {
		err = call()
		return isAnswer(err)
	})
	return err
}

// TestHeldThroughRestart: leases are extended and released after a restart of Redis as before.
func TestHeldThroughRestart(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s, ctx := realStore(t, time.Second, server.Addr()), t.Context()
	if _, err := s.AddHost(ctx, "held.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	held, err := s.TryReserve(ctx, "held.test", time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if !server.Restart() {
		t.Fatal("redis-server does not start again")
	}
	redistest.Eventually(t, "the lease to be extended", func() bool {
		_, err = s.ExtendHost(ctx, "held.test", held.Token, time.Hour)
		return err == nil
	})
	if err := answered(t, func() error {
		return s.ReleaseHost(ctx, "held.test", held.Token, time.Time{})
	}); err != nil {
		t.Errorf("ReleaseHost: %v", err)
	}
	again := func() error {
		_, err := s.TryReserve(ctx, "held.test", time.Hour, "")
		return err
	}
	if err := answered(t, again); !errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve within the longest lease of a restart = %v; want ErrNotNow", err)
	}
}

// TestAbsent: if Redis is not running when the store is opened, it is used as soon as it runs.
func TestAbsent(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	redistest.Eventually(t, "the end of redis-server", func() bool { return !server.Ping() })
	s, ctx := realStore(t, time.Second, server.Addr()), t.Context()
	for range 3 {
		if _, err := s.AddHost(ctx, "a.test", time.Time{}); err == nil {
			t.Error("AddHost without a Redis has no error")
		}
	}
	if !server.Restart() {
		t.Fatal("redis-server does not start again")
	}
	redistest.Eventually(t, "the first host", func() bool {
		_, err := s.AddHost(ctx, "a.test", time.Time{})
		return err == nil
	})
}

// TestPassword: with a wrong password calls fail with an error that says so; with the right one
// they work.
func TestPassword(t *testing.T) {
	server := redistest.Start(t)
	admin, ctx := realStore(t, time.Second, server.Addr()), t.Context()
	do(t, admin, []string{"CONFIG", "SET", "requirepass"}, "secret")
	for password, works := range map[string]bool{"wrong": false, "secret": true} {
		s := patient(New(Config{Addrs: []string{server.Addr()}, Password: password}))
		if _, err := s.AddHost(ctx, "a.test", time.Time{}); (err == nil) != works {
			t.Errorf("AddHost with password %q: %v", password, err)
		}
		s.Close()
	}
}

// TestSilent: a Redis that accepts commands and never answers blocks no caller for ever, neither if
// it is silent from the start nor later.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := New(Config{Addrs: []string{l.Addr().String()}})
	defer silent.Close()
	if err := silent.Sweep(t.Context()); err == nil {
		t.Error("Sweep of what never answers has no error")
	}
	s := New(Config{Addrs: []string{redistest.Start(t).Addr()}})
	defer s.Close()
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(t, s, []string{"CLIENT", "PAUSE"}, "3600000")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Sweep(ctx); err == nil {
		t.Error("Sweep of what has fallen silent has no error")
	}
}

// TestEmptied: Redis comes back empty, and first a store that has reserved nothing meets it. What another
// store has leased before stays its own until it finds its token stale; then nothing is reserved for its
// longest lease and the penalty.
func TestEmptied(t *testing.T) {
	for _, first := range []string{"a store that was there before", "a new store"} {
		t.Run(first, func(t *testing.T) {
			server := redistest.Start(t)
			holder, other := realStore(t, time.Second, server.Addr()), realStore(t, time.Second, server.Addr())
			add := func(s *Store) error {
				_, err := s.AddHost(t.Context(), "held.test", time.Time{})
				return err
			}
			for _, s := range []*Store{holder, other} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			held, err := holder.TryReserve(t.Context(), "held.test", time.Hour, "holder")
			if err != nil {
				t.Fatal(err)
			}
			server.Kill()
			if !server.Restart() {
				t.Fatal("redis-server does not start again")
			}
			if first == "a new store" {
				other = realStore(t, time.Second, server.Addr())
			}
			if err := answered(t, func() error { return add(other) }); err != nil {
				t.Fatal(err)
			}
			again, err := other.TryReserve(t.Context(), "held.test", time.Hour, "other")
			if err != nil || again.Token <= held.Token {
				t.Errorf("token %d, error %v; want one above %d, which is still in use", again.Token, err,
					held.Token)
			}
			if err := answered(t, func() error {
				_, err := holder.ExtendHost(t.Context(), "held.test", held.Token, time.Hour)
				return err
			}); !errors.Is(err, reservation.ErrStale) {
				t.Errorf("ExtendHost with the token of before: %v; want ErrStale", err)
			}
			if _, err := other.AddHost(t.Context(), "free.test", time.Time{}); err != nil {
				t.Fatal(err)
			}
			_, err = other.TryReserve(t.Context(), "free.test", time.Hour, "")
			if !errors.Is(err, reservation.ErrNotNow) {
				t.Errorf("TryReserve after the store with a lost lease has come back: %v; want ErrNotNow", err)
			}
		})
	}
}
