package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

// A service whose clock is behind releases a host for a moment that has to pass by the clocks of all
// services.
func TestReleaseBehind(t *testing.T) {
	addrs := etcdtest.Start(t, 1).Addrs()
	ahead, err := New(Config{Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer ahead.Close()
	slow := open(newKeys(Config{Addrs: addrs}), func(ctx context.Context) (int64, error) {
		now, err := ahead.clock.Now(ctx)
		return now - behind.Milliseconds(), err
	}, behind.Milliseconds)
	defer slow.Close()
	const host = "released.test"
	if _, err := slow.AddHost(t.Context(), host, time.Time{}); err != nil {
		t.Fatal(err)
	}
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
	got := reserved(t, ahead, host)
	if took := got.Sub(released); took < gap {
		t.Errorf("it is given again %v after its release; want %v at least", took, gap)
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
