package grpcguard_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/netguardtest"
)

const (
	checkMethod = grpc_health_v1.Health_Check_FullMethodName
	mega        = 1 << 20
)

// guarded starts a server with the token "right" on TCP, for messages of 4 MiB. It accepts any call
// and has a health service.
func guarded(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := grpcguard.Server{Token: "right", Setting: "a.token", MaxMessage: 4 * mega}.Options()
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(echo))...)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(netguard.LimitListener(l, true)) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestUnfinishedMessagesAreBounded: 64 calls of one connection send 4 MiB each except the last
// byte. Twenty connections that stay below the bound of one share the bound of all.
func TestUnfinishedMessagesAreBounded(t *testing.T) {
	addr := guarded(t)
	before := netguardtest.InUse()
	one := netguardtest.Hoard(t, addr, "/a.Service/Call", "right", 64, 4*mega)
	sent, _, cut := one.Result()
	if took := netguardtest.InUse() - before; took > 16*mega || !cut {
		t.Errorf("one connection sent %d bytes, was cut: %t, and took %d bytes; want it cut, and 16 MiB "+
			"at most", sent, cut, took)
	}
	one.Close()
	cuts := 0
	var all []*netguardtest.Hoarder
	for range 20 {
		all = append(all, netguardtest.Hoard(t, addr, "/a.Service/Call", "right", 7, mega))
	}
	if took := netguardtest.InUse() - before; took > 100*mega {
		t.Errorf("twenty connections took %d bytes; want 100 MiB at most", took)
	}
	for _, h := range all {
		if _, _, cut := h.Result(); cut {
			cuts++
		}
	}
	if cuts < 8 || cuts > 14 {
		t.Errorf("%d of 20 connections with 7 MB each were cut; want those beyond 64 MiB", cuts)
	}
	client := dial(t, addr, "right")
	for range 30 { // finished messages and ended calls do not count
		if err := call(client, 3*mega); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range all {
		h.Close()
	}
}

// TestUnauthenticatedHoldLittle: without the token a client gets no health watch, at most four
// calls, and no long message.
func TestUnauthenticatedHoldLittle(t *testing.T) {
	addr := guarded(t)
	client := grpc_health_v1.NewHealthClient(dial(t, addr, "wrong"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watch, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("Watch without the token: %v; want Unauthenticated", err)
	}
	for range 20 {
		if _, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
			t.Fatalf("Check without the token: %v", err)
		}
	}
	h := netguardtest.Hoard(t, addr, checkMethod, "", 6, 100)
	if _, ended, _ := h.Result(); ended != 2 {
		t.Errorf("%d of 6 unfinished checks of a stranger were ended at once; want 2", ended)
	}
	h.Close()
	before := netguardtest.InUse()
	h = netguardtest.Hoard(t, addr, checkMethod, "", 1, mega)
	if _, _, cut := h.Result(); !cut {
		t.Errorf("a stranger with a message of a megabyte, which takes %d bytes, was not cut",
			netguardtest.InUse()-before)
	}
	h.Close()
}

func dial(t *testing.T, addr, token string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(grpcguard.Bearer(token)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
