package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

// twoClocks returns two services on one etcd. The clock of slow is behind that of fast, and it knows.
func twoClocks(t *testing.T, addrs []string) (fast, slow *Store) {
	t.Helper()
	fast, err := New(Config{Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fast.Close)
	slow = open(newKeys(Config{Addrs: addrs}), func(ctx context.Context) (int64, error) {
		now, err := fast.clock.Now(ctx)
		return now - behind.Milliseconds(), err
	}, behind.Milliseconds)
	t.Cleanup(slow.Close)
	return fast, slow
}

func add(t *testing.T, s *Store, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A service whose clock is behind releases a host for a moment that has to pass by the clocks of all
// services.
func TestReleaseBehind(t *testing.T) {
	fast, slow := twoClocks(t, etcdtest.Start(t, 1).Addrs())
	const host = "released.test"
	add(t, slow, host)
	r, err := slow.TryReserve(t.Context(), host, time.Minute, "one")
	if err != nil {
		t.Fatal(err)
	}
	const gap = time.Second
	released := time.Now()
	if a := slow.Do(t.Context(), []reservation.Call{{Verb: reservation.ReleaseHost, Host: host, Token: r.Token,
		After: gap}}); a[0].Err != nil {
		t.Fatal(a[0].Err)
	}
	if took := reserved(t, fast, host).Sub(released); took < gap {
		t.Errorf("it is given again %v after its release; want %v at least", took, gap)
	}
}

// A service whose clock is behind binds two hosts to a group. While one of them is leased the other one
// is not, until the binding has ended by the clocks of all services.
func TestBindBehind(t *testing.T) {
	fast, slow := twoClocks(t, etcdtest.Start(t, 1).Addrs())
	add(t, slow, "one.test", "two.test")
	const ttl = 2 * time.Second
	bound := time.Now()
	got, err := slow.Bind(t.Context(), []reservation.Binding{{Host: "one.test", Group: "10.0.0.1"},
		{Host: "two.test", Group: "10.0.0.1"}}, ttl)
	if err != nil || got[0].Left != ttl {
		t.Fatalf("Bind = %v, %v; want bindings for %v", got, err, ttl)
	}
	if _, err := slow.TryReserve(t.Context(), "two.test", time.Minute, "one"); err != nil {
		t.Fatal(err)
	}
	if took := reserved(t, fast, "one.test").Sub(bound); took < ttl {
		t.Errorf("it is given %v after it was bound; want %v at least", took, ttl)
	}
}

// reserved waits until a host is reserved, and returns when.
func reserved(t *testing.T, s *Store, host string) time.Time {
	t.Helper()
	for over := time.Now().Add(patience); ; {
		_, err := s.TryReserve(t.Context(), host, 2*lag, "another")
		now := time.Now()
		if err == nil {
			return now
		}
		if !errors.Is(err, reservation.ErrNotNow) || now.After(over) {
			t.Fatalf("TryReserve = %v; want the host, or that it is not free", err)
		}
		time.Sleep(10 * time.Millisecond) // a pause between two calls
	}
}

// If a lease was lost at one service, another service whose clock is ahead does not reserve the
// group while the holder may rely on the lease, however short the penalty is.
func TestLostLeaseIsKeptBack(t *testing.T) {
	addrs := etcdtest.Start(t, 1).Addrs()
	ahead, err := New(Config{Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer ahead.Close()
	behind := open(newKeys(Config{Addrs: addrs}), func(ctx context.Context) (int64, error) {
		now, err := ahead.clock.Now(ctx)
		return now - lag.Milliseconds(), err
	}, nil)
	defer behind.Close()
	if _, err := behind.AddHost(t.Context(), "lost.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	const lease = 2 * lag
	asked := time.Now()
	if _, err := behind.TryReserve(t.Context(), "lost.test", lease, "one"); err != nil {
		t.Fatal(err)
	}
	if took := reserved(t, ahead, "lost.test").Sub(asked); took < lease {
		t.Errorf("it is given again after %v of a lease of %v", took, lease)
	}
}
