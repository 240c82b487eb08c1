package grpcclient_test

import (
	"context"
	"net"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
)

// sluggish is a store whose calls for the next host take a while.
type sluggish struct{ reservation.Store }

func (s sluggish) ReserveNextHost(ctx context.Context, lease time.Duration, most int, holder string) (
	[]reservation.Reservation, error) {
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Store.ReserveNextHost(ctx, lease, most, holder)
}

// TestSlowService: a service is slow, but it works. A call that does not wait long enough makes no other one fail.
func TestSlowService(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	store := memory.New(memory.Config{})
	go func() { served <- grpcserver.New(grpcserver.Config{Store: sluggish{store}}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, host := range []string{"a.test", "b.test"} {
		if _, err := s.AddHost(t.Context(), host, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		patient := make(chan error, 1)
		go func() {
			r, err := s.ReserveNextHost(t.Context(), time.Minute, 1, "")
			if err == nil {
				err = s.ReleaseHost(t.Context(), r[0].Host, r[0].Token, time.Time{})
			}
			patient <- err
		}()
		time.Sleep(500 * time.Millisecond)
		brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := s.ReserveNextHost(brief, time.Minute, 1, ""); err == nil {
			t.Error("the call did not take long")
		}
		cancel()
		if err := <-patient; err != nil {
			t.Errorf("the call that waits: %v", err)
		}
	}
}
