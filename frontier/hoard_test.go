package frontier_test

import (
	"net"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex/memory"
	"urlserver/frontier"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/netguardtest"
)

// TestHoarders: with the token, 64 unfinished messages of 4 MiB on one connection; without it, a
// watch of the service's health. With the token, a packed message of 4 KiB that unpacks to 4 MiB.
func TestHoarders(t *testing.T) {
	settings := configs.Default().Frontier
	settings.Token = "right"
	server, err := frontier.New(frontier.Config{Settings: settings, Store: memory.New(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(t.Context(), l) }()
	t.Cleanup(func() { // the test's context has ended
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	before := netguardtest.InUse()
	h := netguardtest.Hoard(t, l.Addr().String(), pb.URLFrontier_PutURLs_FullMethodName, "right", 64,
		settings.MaxMessage)
	defer h.Close()
	if sent, _, cut := h.Result(); !cut {
		t.Errorf("a connection with %d bytes of unfinished messages, which take %d, goes on; want it cut",
			sent, netguardtest.InUse()-before)
	}
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(soon(t), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("Watch without the token: %v; want Unauthenticated", err)
	}
	put, err := pb.NewURLFrontierClient(conn).PutURLs(soon(t), grpc.UseCompressor("gzip"),
		grpc.PerRPCCredentials(grpcguard.Bearer("right")))
	if err == nil {
		err = put.Send(&pb.URLItem{ID: strings.Repeat("a", settings.MaxMessage-100)})
	}
	if err == nil {
		_, err = put.Recv()
	}
	if status.Code(err) != codes.Internal {
		t.Errorf("a put whose message unpacks to %d bytes: %v; want Internal", settings.MaxMessage-100, err)
	}
}
