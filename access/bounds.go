package access

import (
	"net"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	MaxConns  = 1024     // of a listener at once
	MaxHeader = 16 << 10 // bytes of a call's header, or a request's

	maxStreams   = 1000             // of a connection at once
	window       = 1 << 20          // bytes of a stream that may wait to be read
	readBuffer   = 16 << 10         // of a connection
	greetTimeout = 10 * time.Second // for the TLS handshake and what HTTP/2 begins with
	maxIdle      = 10 * time.Minute // a connection without calls; clients connect anew when they need to
)

// Bounds keep small what each of a gRPC server's clients can take of it; how many there may be, Door says.
func Bounds() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(MaxHeader),
		grpc.ConnectionTimeout(greetTimeout),
		grpc.ReadBufferSize(readBuffer),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(4 * window),
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
