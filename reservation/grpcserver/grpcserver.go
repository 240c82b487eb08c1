// Package grpcserver serves a reservation.Store over gRPC, to crawlers in any language.
package grpcserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	pb "urlserver/api/reservation"
	"urlserver/internal/netguard/grpcguard"
	"urlserver/reservation"
)

const (
	readBuffer = 4 << 10     // bytes for each connection: calls are small
	maxMessage = 32 << 20    // bytes: an alias of reservation.MaxHosts long names
	sweepTime  = time.Minute // of one sweep
)

// Config is the configuration of a Server. Store is required.
type Config struct {
	Store   reservation.Store
	Janitor time.Duration // period of sweeps; 0: another process sweeps the store
	Token   string        // that callers need; "": none
	TLS     *tls.Config   // nil: plain TCP
	Log     zerolog.Logger
}

// Server is the host reservation service. Create it with New, then call Serve. It is also a
// prometheus.Collector.
type Server struct {
	pb.UnimplementedHostReservationServer
	cfg      Config
	grpc     *grpc.Server
	health   *health.Server
	counters counters
}

// New returns a service.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, health: health.NewServer(), counters: newFigures()}
	asks := grpcguard.Server{Token: cfg.Token, Setting: "--token", MaxMessage: maxMessage}
	if cfg.TLS != nil {
		asks.TLS = credentials.NewTLS(cfg.TLS)
	}
	options := append(asks.Options(), grpc.ReadBufferSize(readBuffer),
		grpc.ChainUnaryInterceptor(s.counters.count))
	s.grpc = grpc.NewServer(options...)
	pb.RegisterHostReservationServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.setServing(true)
	reflection.Register(s.grpc)
	return s
}

// setServing sets the answer to health checks, of the service and of the whole server.
func (s *Server) setServing(serving bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(pb.HostReservation_ServiceDesc.ServiceName, status)
	s.health.SetServingStatus("", status)
}

// Serve answers calls on l until ctx ends, and returns after they have ended. It closes l. The
// error is nil unless l failed before ctx ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	sweeping, end := context.WithCancel(ctx)
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		s.sweep(sweeping)
	}()
	defer func() {
		end()
		<-swept
	}()
	if err := grpcguard.Serve(ctx, s.grpc, l, s.cfg.Token != "", s.health.Shutdown); err != nil {
		return fmt.Errorf("host reservation service: %w", err)
	}
	return nil
}

// sweep runs the janitor. Its result is the answer to health checks.
func (s *Server) sweep(ctx context.Context) {
	if s.cfg.Janitor == 0 {
		return
	}
	ticker := time.NewTicker(s.cfg.Janitor)
	defer ticker.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, sweepTime)
		err := s.cfg.Store.Sweep(call)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.cfg.Log.Error().Err(err).Msg("the store could not be swept: nothing is " +
				"reserved anew while it is away")
		}
		s.setServing(err == nil)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
