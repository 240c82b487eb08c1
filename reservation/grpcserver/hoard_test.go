package grpcserver_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "urlserver/api/reservation"
	"urlserver/internal/testkit/netguardtest"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
)

// TestHoarders: with the token, a client sends 64 unfinished messages of 4 MiB on one connection;
// without it, it watches the service's health.
func TestHoarders(t *testing.T) {
	_, addr := serve(t, grpcserver.Config{Store: memory.New(memory.Config{}), Token: "right"})
	before := netguardtest.InUse()
	h := netguardtest.Hoard(t, addr, pb.HostReservation_SetAlias_FullMethodName, "right", 64, 4<<20)
	defer h.Close()
	if sent, _, cut := h.Result(); !cut {
		t.Errorf("a connection with %d bytes of unfinished messages, which take %d, goes on; want it cut",
			sent, netguardtest.InUse()-before)
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := grpc_health_v1.NewHealthClient(conn).
		Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("Watch without the token: %v; want Unauthenticated", err)
	}
}
