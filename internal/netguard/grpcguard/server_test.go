package grpcguard_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/netguardtest"
)

// bounded runs do under virtual time. The server at the listener has the bounds.
func bounded(t *testing.T, do func(t *testing.T, l *netguardtest.Pipes)) {
	synctest.Test(t, func(t *testing.T) {
		l := netguardtest.NewPipes()
		server := grpc.NewServer(grpcguard.Server{MaxMessage: 4 << 20}.Options()...)
		grpc_health_v1.RegisterHealthServer(server, health.NewServer())
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(netguard.LimitListener(l, false)) }()
		do(t, l)
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// lasts returns how long a connection stays open. It ignores the data received.
func lasts(conn net.Conn) time.Duration {
	began := time.Now()
	_, _ = io.Copy(io.Discard, conn) // the error does not matter
	return time.Since(began)
}

func TestSilentConnectionsAreCut(t *testing.T) {
	bounded(t, func(t *testing.T, l *netguardtest.Pipes) {
		if got := lasts(l.Dial()); got != 10*time.Second {
			t.Errorf("who says nothing stays for %v; want 10s", got)
		}
		conn := l.Dial()
		go io.WriteString(conn, "PRI * HTTP/2.0\r\n")
		if got := lasts(conn); got != 10*time.Second {
			t.Errorf("who ends in its greeting stays for %v; want 10s", got)
		}
		conn = l.Dial()
		// and empty SETTINGS
		go io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		if got := lasts(conn); got != 80*time.Second {
			t.Errorf("who answers no ping stays for %v; want 80s", got)
		}
	})
}

func TestIdleConnectionsEnd(t *testing.T) {
	bounded(t, func(t *testing.T, l *netguardtest.Pipes) {
		conn := client(t, l)
		defer conn.Close()
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(),
			&grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		conn.WaitForStateChange(t.Context(), connectivity.Ready)
		if got := time.Since(began); got < 10*time.Minute || got > 20*time.Minute {
			t.Errorf("a client that calls no more stays for %v; want some 10m", got)
		}
	})
}

func client(t *testing.T, l *netguardtest.Pipes) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial(), nil }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestConnectionsAreBounded(t *testing.T) {
	bounded(t, func(t *testing.T, l *netguardtest.Pipes) {
		var conns []net.Conn
		for range netguard.MaxConns {
			conns = append(conns, l.Dial())
		}
		more := make(chan net.Conn)
		go func() { more <- l.Dial() }()
		synctest.Wait()
		select {
		case <-more:
			t.Error("one more connection is served")
		default:
		}
		conns[0].Close()
		conns = append(conns, <-more)
		for _, c := range conns {
			c.Close()
		}
	})
}

func TestHeadersAreBounded(t *testing.T) {
	bounded(t, func(t *testing.T, l *netguardtest.Pipes) {
		conn := client(t, l)
		defer conn.Close()
		for n, want := range map[int]codes.Code{netguard.MaxHeader / 2: codes.OK,
			netguard.MaxHeader: codes.Internal} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "long", strings.Repeat("x", n))
			_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			if status.Code(err) != want {
				t.Errorf("a header with %d bytes: %v; want %v", n, err, want)
			}
		}
	})
}
