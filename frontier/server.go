// Package frontier serves the URL Frontier interface of crawler-commons over gRPC from a
// docindex.Store. Where a client's wish can be read in several ways, this package decides, each thing in one place;
// queues, leases and times are the store's.
package frontier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/netguard"
)

const stopWait = 5 * time.Second // for calls under way

// Store is what the service uses of a doc index.
type Store interface {
	docindex.Frontier
	Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
}

// Config is what a Server works with. Store is needed.
type Config struct {
	Settings configs.Frontier
	Store    Store
	Log      zerolog.Logger
	SetLevel func(level string) // changes the level of the log, by the words of log.level; nil: it stays
}

// Server is the service. Use New, then Serve. It is a prometheus.Collector, too.
type Server struct {
	pb.UnimplementedURLFrontierServer
	store    Store
	log      zerolog.Logger
	setLevel func(string)
	node     string // its address, as ListNodes has it
	guarded  bool   // clients are asked for a token
	stopping atomic.Bool
	figures  figures
	certs    *netguard.ServerTLS // nil: no TLS
	grpc     *grpc.Server
	health   *health.Server
}

// New returns a service with its settings; it reads the certificate that they name.
func New(cfg Config) (*Server, error) {
	s := &Server{store: cfg.Store, log: cfg.Log, setLevel: cfg.SetLevel, node: cfg.Settings.Listen, guarded: cfg.Settings.Token != "", health: health.NewServer()}
	asks := netguard.GRPCServer{Token: string(cfg.Settings.Token), Setting: "frontier.token", MaxMessage: cfg.Settings.MaxMessage}
	if cfg.Settings.TLSCert != "" {
		var err error
		s.certs, err = netguard.LoadServerTLS(netguard.ServerFiles{Setting: "frontier.tls_", Cert: cfg.Settings.TLSCert, Private: cfg.Settings.TLSKey})
		if err != nil {
			return nil, err
		}
		asks.TLS = credentials.NewTLS(s.certs.Config())
	}
	options := append(asks.Options(), grpc.ForceServerCodecV2(newCodec()))
	s.grpc = grpc.NewServer(options...)
	pb.RegisterURLFrontierServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus(pb.URLFrontier_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	reflection.Register(s.grpc)
	return s, nil
}

// Certificates are the service's; nil: it has no TLS.
func (s *Server) Certificates() *netguard.ServerTLS { return s.certs }

// Serve answers calls on l until ctx ends, and returns when they have ended: what is put then is answered with
// FAIL, and who asks gets nothing. It closes l. The error is nil unless l failed before ctx ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.node = l.Addr().String()
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop()
	})
	err := s.grpc.Serve(netguard.LimitListener(l, s.guarded))
	if unhook() {
		s.grpc.Stop()
		return fmt.Errorf("frontier.listen: %w", err)
	}
	<-stopped
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// stop ends gracefully, but not for long: streams of clients that do not care end by force.
func (s *Server) stop() {
	s.stopping.Store(true)
	s.health.Shutdown()
	timer := time.AfterFunc(stopWait, s.grpc.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
}
