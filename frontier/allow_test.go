package frontier_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/internal/netguard/grpcguard"
)

// allowCase is a client of a service that allows 127.0.0.1.
type allowCase struct {
	name          string
	token, secure bool // what the service asks for
	from          string
	says, speaks  bool // the client sends the token; it speaks TLS
	want          codes.Code
}

// A client from an allowed network comes without token and TLS, or with them. All others need what
// the service asks for; if it asks for nothing, they have no way in.
func TestAllowFrom(t *testing.T) {
	cert := newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	for _, c := range []allowCase{
		{name: "allowed", from: "127.0.0.1", want: codes.OK},
		{name: "not allowed", from: "127.0.0.2", want: codes.Unavailable},
		{name: "allowed without token", token: true, from: "127.0.0.1", want: codes.OK},
		{name: "allowed with token", token: true, from: "127.0.0.1", says: true, want: codes.OK},
		{name: "others without token", token: true, from: "127.0.0.2", want: codes.Unauthenticated},
		{name: "others with token", token: true, from: "127.0.0.2", says: true, want: codes.OK},
		{name: "allowed without TLS", secure: true, from: "127.0.0.1", want: codes.OK},
		{name: "allowed with TLS", secure: true, from: "127.0.0.1", speaks: true, want: codes.OK},
		{name: "others without TLS", secure: true, from: "127.0.0.2", want: codes.Unavailable},
		{name: "others with TLS", secure: true, from: "127.0.0.2", speaks: true, want: codes.OK},
		{name: "allowed with nothing", token: true, secure: true, from: "127.0.0.1", want: codes.OK},
		{name: "others with TLS alone", token: true, secure: true, from: "127.0.0.2", speaks: true,
			want: codes.Unauthenticated},
		{name: "others with both", token: true, secure: true, from: "127.0.0.2", says: true, speaks: true,
			want: codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, cert) })
	}
}

func (c allowCase) run(t *testing.T, cert certificate) {
	const token = "0123456789abcdef"
	settings := configs.Default().Frontier
	settings.AllowFrom = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"),
		netip.MustParsePrefix("127.0.0.1/32")}
	if c.token {
		settings.Token = token
	}
	if c.secure {
		settings.TLSCert, settings.TLSKey = cert.cert, cert.key
	}
	creds := insecure.NewCredentials()
	if c.speaks {
		creds = credentials.NewTLS(&tls.Config{RootCAs: cert.pool, MinVersion: tls.VersionTLS12})
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.from)}}
	options := []grpc.DialOption{grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		})}
	if c.says {
		options = append(options, grpc.WithPerRPCCredentials(grpcguard.Bearer(token)))
	}
	conn, err := grpc.NewClient(serveWith(t, settings), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = pb.NewURLFrontierClient(conn).GetActive(soon(t), &pb.Local{})
	if got := status.Code(err); got != c.want {
		t.Errorf("GetActive: %v; want %v", err, c.want)
	}
}
