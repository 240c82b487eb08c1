package etcd

import (
	"context"
	"errors"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

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
	})
	defer behind.Close()
	if _, err := behind.AddHost(t.Context(), "lost.test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	const lease = 2 * lag
	asked := time.Now()
	if _, err := behind.TryReserve(t.Context(), "lost.test", lease, "one"); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := ahead.TryReserve(t.Context(), "lost.test", lease, "another")
		took := time.Since(asked)
		switch {
		case err == nil && took < lease:
			t.Fatalf("it is given again after %v of a lease of %v", took, lease)
		case err == nil:
			return
		case !errors.Is(err, reservation.ErrNotNow) || took > patience:
			t.Fatalf("TryReserve = %v after %v; want the host, or that it is not free", err, took)
		}
		time.Sleep(10 * time.Millisecond) // a pause between two calls
	}
}
