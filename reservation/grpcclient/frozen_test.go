package grpcclient_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
)

// TestFrozenService: a service stands still, with its connections open. Calls go to the other one as soon as
// one call has waited for it in vain.
func TestFrozenService(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- grpcserver.New(grpcserver.Config{Store: memory.New(memory.Config{})}).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	var frozen atomic.Bool
	behind := freezing(t, l.Addr().String(), &frozen)
	s, err := grpcclient.New(grpcclient.Config{Addrs: []string{behind, l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 10 { // both are connected
		if _, err := s.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	frozen.Store(true)
	failed := 0
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		for _, a := range s.Do(ctx, []reservation.Call{{Verb: reservation.AddHost, Host: "a.test"}}) {
			if a.Err != nil {
				failed++
			}
		}
		cancel()
	}
	if failed > 2 {
		t.Errorf("%d of 20 calls failed beside a service that stands still; want 2 at most", failed)
	}
}

// freezing returns the address of a proxy that passes nothing on while it is frozen.
func freezing(t *testing.T, to string, frozen *atomic.Bool) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn) {
		defer to.Close()
		part := make([]byte, 4096)
		for {
			n, err := from.Read(part)
			if frozen.Load() {
				<-t.Context().Done()
			}
			if _, failed := to.Write(part[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				return
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return l.Addr().String()
}
