package urlserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex/memory"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	reservations "urlserver/reservation/memory"
)

// serveReservation runs a host reservation service over gRPC until the test ends, and returns a client
// of it.
func serveReservation(t *testing.T) *grpcclient.Store {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := grpcserver.New(grpcserver.Config{Store: reservations.New(reservations.Config{}),
		Janitor: time.Second, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	client, err := grpcclient.New(grpcclient.Config{Addrs: []string{l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestHostThatMovesUnderAReservation is TestHostThatMoves with a host reservation service over
// gRPC, which binds the host to its old address. It runs alone, as leases of two seconds bear no
// long stall.
func TestHostThatMovesUnderAReservation(t *testing.T) {
	client := serveReservation(t)
	spiders, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names, store := serveNames(t, "127.0.0.1:0"), memory.New()
	reserver := &Reserver{Store: client, Lease: 2 * time.Second, Holder: "me", Log: zerolog.Nop()}
	r := newRigOver(t, spiders, Parts{Index: store, Store: store, Reserver: reserver}, func(c *configs.Config) {
		c.Resolver.Servers, c.Resolver.MinTTL, c.ReqHostPerSec = []string{names.addr}, time.Second, 20
	})
	s := r.spider()
	put := 0
	more := func() {
		var urls []string
		for range 1000 {
			put++
			urls = append(urls, fmt.Sprintf("http://h0.good.test/%d", put))
		}
		r.put(urls...)
	}
	after := netip.MustParseAddr("127.1.0.77")
	lost := 0
	next := func() []string {
		for ; ; lost++ {
			f, err := s.read()
			if err == nil {
				return f
			}
			if !errors.Is(err, io.EOF) || lost == 5 {
				t.Fatalf("connection %d: %v", lost, err)
			}
			s = r.spider() // a stall of two seconds has ended the lease, and the daemon the connection
		}
	}
	for n, moved := 0, 0; moved < 10; n++ {
		if n%500 == 0 { // so that documents are held all the time
			more()
		}
		f := next()
		switch {
		case f[2] == after.String():
			moved++
		case f[2] != "127.1.0.1" || moved > 0:
			t.Fatalf("line %d is for %s, after %d for %v", n, f[2], moved, after)
		}
		if n == 10 {
			names.mu.Lock()
			names.moved = after
			names.mu.Unlock()
		}
		s.say("%s DONE 200", f[0])
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
