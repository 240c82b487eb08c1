package grpcguard_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/netguardtest"
)

// TestCallsOfUnauthenticatedCostLittle: a client that keeps calling without the right token gets
// errors, and its data is not read. A client with the token is served at once.
func TestCallsOfUnauthenticatedCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := netguardtest.NewPipes()
		l := &netguardtest.Reads{Listener: p}
		options := grpcguard.Server{Token: "right", Setting: "a.token", MaxMessage: 64 << 20}.Options()
		server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(echo))...)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(netguard.LimitListener(l, true)) }()
		wrong, right := caller(t, p, "wrong"), caller(t, p, "right")
		const lasts = 20 * time.Second
		began := time.Now()
		if got := status.Code(call(wrong, 3<<20)); got != codes.Unauthenticated || time.Since(began) != 0 {
			t.Errorf("%v after %v; want Unauthenticated at once", got, time.Since(began))
		}
		for time.Since(began) < lasts {
			_ = call(wrong, 3<<20)
			time.Sleep(10 * time.Millisecond)
		}
		if n, most := l.Bytes.Load(), int64((12+lasts/(500*time.Millisecond)+2)*16<<10); n > most {
			t.Errorf("%d bytes of a stranger were read in %v; want at most %d", n, lasts, most)
		}
		began = time.Now()
		if err := call(right, 32<<20); err != nil || time.Since(began) != 0 {
			t.Errorf("who has the token: %v after %v; want its answer at once", err, time.Since(began))
		}
		wrong.Close()
		right.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// echo receives all messages.
func echo(_ any, stream grpc.ServerStream) error {
	var m wrapperspb.BytesValue
	if err := stream.RecvMsg(&m); err != nil {
		return err
	}
	return stream.SendMsg(&wrapperspb.BytesValue{})
}

func caller(t *testing.T, p *netguardtest.Pipes, token string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(grpcguard.Bearer(token)),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return p.Dial(), nil }))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func call(conn *grpc.ClientConn, size int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return conn.Invoke(ctx, "/a.Service/Call", &wrapperspb.BytesValue{Value: make([]byte, size)},
		&wrapperspb.BytesValue{})
}
