package grpcserver_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "urlserver/api/reservation"
	"urlserver/internal/netguard"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/internal/testkit/certstest"
	"urlserver/reservation"
	"urlserver/reservation/grpcclient"
	"urlserver/reservation/grpcserver"
	"urlserver/reservation/memory"
	"urlserver/reservation/reservationtest"
)

// serve runs a service until the test ends, and returns its address.
func serve(t *testing.T, cfg grpcserver.Config) (s *grpcserver.Server, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	s = grpcserver.New(cfg)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr().String()
}

func client(t *testing.T, cfg grpcclient.Config) *grpcclient.Store {
	t.Helper()
	s, err := grpcclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// swept sweeps the store of a service.
type swept struct {
	*grpcclient.Store
	behind reservation.Store
}

func (s swept) Sweep(ctx context.Context) error { return s.behind.Sweep(ctx) }

func TestStore(t *testing.T) {
	reservationtest.Run(t, func(t *testing.T) reservationtest.Bench {
		var clock atomic.Int64
		clock.Store(1_700_000_000_000)
		now := func() time.Time { return time.UnixMilli(clock.Load()) }
		behind := memory.New(memory.Config{Penalty: reservationtest.Penalty, Now: now})
		_, addr := serve(t, grpcserver.Config{Store: behind})
		return reservationtest.Bench{
			Store:   swept{Store: client(t, grpcclient.Config{Addrs: []string{addr}}), behind: behind},
			Now:     now,
			Advance: func(d time.Duration) { clock.Add(d.Milliseconds()) },
			Many:    5000, Remote: true,
		}
	})
}

// TestStatus checks the status codes that clients in other languages see.
func TestStatus(t *testing.T) {
	_, addr := serve(t, grpcserver.Config{Store: memory.New(memory.Config{})})
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, ctx := pb.NewHostReservationClient(conn), t.Context()
	want := func(what string, err error, code codes.Code) {
		t.Helper()
		if got := status.Code(err); got != code {
			t.Errorf("%s: %v; want %v", what, err, code)
		}
	}
	_, err = c.ReserveNextHost(ctx, &pb.ReserveNextHostRequest{LeaseMs: 1000})
	want("nothing due", err, codes.NotFound)
	_, err = c.TryReserve(ctx, &pb.TryReserveRequest{Host: "a.test", LeaseMs: 1000})
	want("unknown", err, codes.NotFound)
	_, err = c.AddHost(ctx, &pb.AddHostRequest{Host: "a b"})
	want("bad host", err, codes.InvalidArgument)
	_, err = c.SetAlias(ctx, &pb.Alias{Alias: "a.b", Hosts: []string{"a.test"}})
	want("bad alias", err, codes.InvalidArgument)
	for _, lease := range []int64{0, -1, 86_400_001, 1 << 62} {
		_, err = c.TryReserve(ctx, &pb.TryReserveRequest{Host: "a.test", LeaseMs: lease})
		want("bad lease", err, codes.InvalidArgument)
	}
	if a, err := c.AddHost(ctx, &pb.AddHostRequest{Host: "A.test", EarliestMs: -5}); err != nil || !a.Added {
		t.Errorf("AddHost = %v, %v; want it added", a, err)
	}
	got, err := c.ReserveNextHost(ctx, &pb.ReserveNextHostRequest{LeaseMs: 60_000, Holder: "me"})
	if err != nil || len(got.Reservations) != 1 || got.Reservations[0].Host != "a.test" ||
		got.Reservations[0].Group != "a.test" {
		t.Fatalf("ReserveNextHost = %v, %v; want a.test", got, err)
	}
	_, err = c.TryReserve(ctx, &pb.TryReserveRequest{Host: "a.test", LeaseMs: 1000})
	want("busy", err, codes.NotFound)
	_, err = c.ReleaseHost(ctx, &pb.ReleaseHostRequest{Host: "a.test", Token: got.Reservations[0].Token + 1})
	want("stale token", err, codes.FailedPrecondition)
	if x, err := c.Explain(ctx, &pb.HostRequest{Host: "a.test"}); err != nil || x.State != "busy" ||
		x.Holder != "me" || x.UntilMs != got.Reservations[0].LeaseEndMs {
		t.Errorf("Explain = %v, %v; want busy", x, err)
	}
}

func TestToken(t *testing.T) {
	_, addr := serve(t, grpcserver.Config{Store: memory.New(memory.Config{}), Token: "secret"})
	for token, works := range map[string]bool{"": false, "wrong": false, "secret": true} {
		s := client(t, grpcclient.Config{Addrs: []string{addr}, Token: token})
		if _, err := s.AddHost(t.Context(), "a.test", time.Time{}); (err == nil) != works {
			t.Errorf("AddHost with token %q: %v", token, err)
		} else if err != nil && status.Code(errors.Unwrap(err)) != codes.Unauthenticated {
			t.Errorf("AddHost with token %q: %v; want Unauthenticated", token, err)
		}
	}
}

// TestTLS: the service has a certificate. If it has a CA for clients, it demands theirs.
func TestTLS(t *testing.T) {
	own := certstest.New(t) // is its own authority
	server, err := netguard.LoadServerTLS(netguard.ServerFiles{Cert: own.Cert, Private: own.Key,
		CA: own.Cert})
	if err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, grpcserver.Config{Store: memory.New(memory.Config{}), TLS: server.Config()})
	for _, tc := range []struct {
		name  string
		files netguard.ClientFiles
		works bool
	}{
		{name: "plain TCP"},
		{name: "no client certificate", files: netguard.ClientFiles{CA: own.Cert}},
		{name: "all", files: netguard.ClientFiles{Cert: own.Cert, Key: own.Key, CA: own.Cert}, works: true},
	} {
		cfg, err := tc.files.Client()
		if err != nil {
			t.Fatal(err)
		}
		s := client(t, grpcclient.Config{Addrs: []string{addr}, TLS: cfg})
		if _, err := s.AddHost(t.Context(), "a.test", time.Time{}); (err == nil) != tc.works {
			t.Errorf("%s: AddHost: %v", tc.name, err)
		}
	}
	for _, bad := range []netguard.ClientFiles{{Key: own.Key}, {Cert: own.Cert},
		{Cert: own.Cert, Key: own.Key, CA: own.Key}, {Cert: "none", Key: "none"}} {
		if _, err := bad.Client(); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// broken is a store that is away.
type broken struct{ reservation.Store }

func (broken) Sweep(context.Context) error { return errors.New("away") }
func (broken) Stats(context.Context) (reservation.Stats, error) {
	return reservation.Stats{}, errors.New("away")
}

// TestHealth: health checks need no token and watches do. Both report when the store is away.
func TestHealth(t *testing.T) {
	for name, tc := range map[string]struct {
		store reservation.Store
		want  grpc_health_v1.HealthCheckResponse_ServingStatus
	}{
		"well": {store: memory.New(memory.Config{}), want: grpc_health_v1.HealthCheckResponse_SERVING},
		"away": {store: broken{}, want: grpc_health_v1.HealthCheckResponse_NOT_SERVING},
	} {
		_, addr := serve(t, grpcserver.Config{Store: tc.store, Janitor: time.Hour, Token: "secret"})
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		health, asked := grpc_health_v1.NewHealthClient(conn),
			&grpc_health_v1.HealthCheckRequest{Service: "hostreservation.HostReservation"}
		watch, err := health.Watch(t.Context(), asked, grpc.PerRPCCredentials(grpcguard.Bearer("secret")))
		if err != nil {
			t.Fatal(err)
		}
		for {
			got, err := watch.Recv()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Status == tc.want {
				break
			}
		}
		if got, err := health.Check(t.Context(), asked); err != nil || got.Status != tc.want {
			t.Errorf("%s: Check without the token: %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	s, addr := serve(t, grpcserver.Config{Store: memory.New(memory.Config{})})
	c := client(t, grpcclient.Config{Addrs: []string{addr}})
	for range 2 {
		if _, err := c.AddHost(t.Context(), "a.test", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := testutil.CollectAndCompare(s, strings.NewReader(`
# HELP hostreservation_calls_total Calls, by method and status code.
# TYPE hostreservation_calls_total counter
hostreservation_calls_total{code="OK",method="AddHost"} 2
# HELP hostreservation_hosts Hosts, by state.
# TYPE hostreservation_hosts gauge
hostreservation_hosts{state="busy"} 0
hostreservation_hosts{state="ready"} 1
hostreservation_hosts{state="waiting"} 0
# HELP hostreservation_store_up 1 if the store answers.
# TYPE hostreservation_store_up gauge
hostreservation_store_up 1
`), "hostreservation_calls_total", "hostreservation_hosts", "hostreservation_store_up"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(s); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	away, _ := serve(t, grpcserver.Config{Store: broken{}})
	if got := testutil.CollectAndCount(away, "hostreservation_hosts"); got != 0 {
		t.Errorf("%d counts of a store that is away", got)
	}
}

// TestSeveral: calls succeed while one of two services is away.
func TestSeveral(t *testing.T) {
	store := memory.New(memory.Config{})
	_, one := serve(t, grpcserver.Config{Store: store})
	c := client(t, grpcclient.Config{Addrs: []string{"127.0.0.1:1", one}})
	for i := range 20 {
		if added, err := c.AddHost(t.Context(), "a.test", time.Time{}); err != nil || added != (i == 0) {
			t.Fatalf("AddHost = %v, %v", added, err)
		}
	}
}
