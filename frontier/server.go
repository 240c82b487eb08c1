// Package frontier serves the URL Frontier API of crawler-commons over gRPC from a doc index. If a
// request can be read in several ways, this package decides, each case in one place. Queues, leases
// and times are the store's.
package frontier

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

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
	"urlserver/internal/netguard/grpcguard"
)

// Store is what the service uses of a doc index.
type Store interface {
	docindex.Frontier
	Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
}

// Config is the configuration of a Server. Store is required.
type Config struct {
	Settings configs.Frontier
	Store    Store
	Log      zerolog.Logger
	Host     string             // name that ListNodes tells, with the port; "": the listener's address
	SetLevel func(level string) // changes the level of the log, with the values of log.level; nil: no change
}

// Server is the service. Create it with New, then call Serve. It is also a prometheus.Collector.
type Server struct {
	pb.UnimplementedURLFrontierServer
	store    Store
	log      zerolog.Logger
	setLevel func(string)
	node     string // its address, as in ListNodes
	guarded  bool   // whether clients need a token
	stopping atomic.Bool
	counters counters
	failures failures
	lists    openLists
	certs    *netguard.ServerTLS // nil: no TLS
	grpc     *grpc.Server
	health   *health.Server
}

// New returns a service. It reads the certificate files that the settings name.
func New(cfg Config) (*Server, error) {
	s := &Server{store: cfg.Store, log: cfg.Log, setLevel: cfg.SetLevel, node: cfg.Host,
		guarded: cfg.Settings.Token != "", health: health.NewServer()}
	asks := grpcguard.Server{Token: string(cfg.Settings.Token), Setting: "frontier.token",
		AllowFrom: cfg.Settings.AllowFrom, MaxMessage: cfg.Settings.MaxMessage}
	if cfg.Settings.TLSCert != "" {
		var err error
		s.certs, err = netguard.LoadServerTLS(netguard.ServerFiles{Setting: "frontier.tls_",
			Cert: cfg.Settings.TLSCert, Private: cfg.Settings.TLSKey})
		if err != nil {
			return nil, err
		}
		asks.TLS = credentials.NewTLS(s.certs.Config())
	}
	options := append(asks.Options(), grpc.ForceServerCodecV2(newCodec()))
	s.grpc = grpc.NewServer(options...)
	pb.RegisterURLFrontierServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus(pb.URLFrontier_ServiceDesc.ServiceName,
		grpc_health_v1.HealthCheckResponse_SERVING)
	reflection.Register(s.grpc)
	return s, nil
}

// Certificates returns the service's certificates; nil: it has no TLS.
func (s *Server) Certificates() *netguard.ServerTLS { return s.certs }

// Serve answers calls on l until ctx ends, and returns after they have ended. After ctx has ended,
// calls in progress get FAIL for items, and no URLs. Serve closes l. The error is nil unless l
// failed before ctx ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.node = nodeName(s.node, l.Addr())
	defer s.lists.closeAll()
	err := grpcguard.Serve(ctx, s.grpc, l, s.guarded, func() {
		s.stopping.Store(true)
		s.health.Shutdown()
	})
	if err != nil {
		return fmt.Errorf("frontier.listen: %w", err)
	}
	return nil
}

// nodeName returns "host:port" of a listener, with another host if that is not "".
func nodeName(host string, addr net.Addr) string {
	_, port, err := net.SplitHostPort(addr.String())
	if host == "" || err != nil {
		return addr.String()
	}
	return net.JoinHostPort(host, port)
}
