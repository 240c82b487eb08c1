package grpcguard

import (
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"urlserver/internal/netguard"
)

const (
	maxStreams       = 100              // open streams of a connection; the client queues further calls
	window           = 64 << 10         // bytes of a stream's finished messages that may wait for its handler
	connWindow       = 4 << 20          // flow-control window of a connection in bytes
	checkTimeout     = 10 * time.Second // of a health check on an unauthenticated connection
	readBuffer       = 16 << 10         // bytes a connection
	handshakeTimeout = 10 * time.Second // for the TLS handshake and the HTTP/2 preface
	maxIdle          = 10 * time.Minute // of a connection without calls; clients reconnect when they need to
)

// Server describes what a gRPC server requires of its clients and how much it grants them.
type Server struct {
	Token      string // required of each call except health checks; "" requires none
	Setting    string // the name of the token's setting, for error messages
	MaxMessage int    // bytes
	TLS        credentials.TransportCredentials
	AllowFrom  []netip.Prefix // their clients need no token, and may leave out TLS
}

// Options returns the server options that require the token and bound the memory and the streams of
// each client and of all together. Clients may pack their messages with gzip; answers are not
// packed. [netguard.LimitListener] bounds the number of connections.
func (s Server) Options() []grpc.ServerOption {
	m := newMeter(s.MaxMessage, s.Token != "")
	return append(plainAnswers(),
		grpc.Creds(m.credentials(s.admission())),
		grpc.InTapHandle(newGuard(s.Token, s.Setting, m).check),
		grpc.MaxRecvMsgSize(s.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(netguard.MaxHeader),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(connWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 10 * time.Second, PermitWithoutStream: true,
		}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: time.Minute, Timeout: 20 * time.Second, MaxConnectionIdle: maxIdle,
		}),
	)
}
