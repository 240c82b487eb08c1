package access

import (
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const (
	MaxConns  = 1024     // of a listener at once
	MaxHeader = 16 << 10 // bytes of a call's header, or a request's

	maxStreams   = 100              // of a connection at once; a client's further calls wait in the client
	window       = 64 << 10         // bytes of a stream's finished messages that may wait for its handler
	connWindow   = 4 << 20          // bytes of a connection that may be under way
	checkTime    = 10 * time.Second // for a health check of a connection that has shown no token
	readBuffer   = 16 << 10         // of a connection
	greetTimeout = 10 * time.Second // for the TLS handshake and what HTTP/2 begins with
	maxIdle      = 10 * time.Minute // a connection without calls; clients connect anew when they need to
)

// Service is what a gRPC server asks of its clients, and what it lets them take.
type Service struct {
	Token      string // asked of each call but health checks (not watches); "": none is asked
	Setting    string // what the operator calls the token
	MaxMessage int    // bytes of a message
	TLS        credentials.TransportCredentials
}

// Options keep small what each client, and all together, can take of a gRPC server: see meter for memory, and Door for the
// number of connections.
func (s Service) Options() []grpc.ServerOption {
	m := newMeter(s.MaxMessage, s.Token != "")
	return []grpc.ServerOption{
		grpc.Creds(m.credentials(s.TLS)),
		grpc.InTapHandle(newGuard(s.Token, s.Setting, m).check),
		grpc.MaxRecvMsgSize(s.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(MaxHeader),
		grpc.ConnectionTimeout(greetTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(connWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second, MaxConnectionIdle: maxIdle}),
	}
}

// Door is l with MaxConns connections at once; more wait to be accepted. Where the service asks for a token, it is Wary, too.
func Door(l net.Listener, token bool) net.Listener {
	l = netutil.LimitListener(l, MaxConns)
	if token {
		l = Wary(l)
	}
	return l
}
