package frontier_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex/memory"
	"urlserver/frontier"
)

// certificate is one for an address, which is its own authority.
type certificate struct {
	cert, key string // files
	pool      *x509.CertPool
}

func newCertificate(t *testing.T, addr string, until time.Time) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "urlserver test"},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IPAddresses: []net.IP{net.ParseIP(addr)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	c := certificate{pool: x509.NewCertPool()}
	c.pool.AppendCertsFromPEM(cert)
	c.cert = file(t, "cert.pem", cert)
	c.key = file(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}))
	return c
}

func file(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveTLS serves with a certificate on a real socket.
func serveTLS(t *testing.T, c certificate) (addr string) {
	t.Helper()
	settings := configs.Default().Frontier
	settings.TLSCert, settings.TLSKey = c.cert, c.key
	return serveWith(t, settings)
}

// serveWith serves with these settings on a real socket.
func serveWith(t *testing.T, settings configs.Frontier) (addr string) {
	t.Helper()
	server, err := frontier.New(frontier.Config{Settings: settings, Store: memory.New(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// TestTLS calls over TLS and puts a URL; clients that do not trust the certificate, or do not speak
// TLS, get nowhere.
func TestTLS(t *testing.T) {
	good := newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	other := newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	expired := newCertificate(t, "127.0.0.1", time.Now().Add(-time.Hour))
	elsewhere := newCertificate(t, "127.0.0.2", time.Now().Add(time.Hour))
	trusts := func(c certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: c.pool, MinVersion: tls.VersionTLS12})
	}
	for _, c := range []struct {
		name   string
		server certificate
		client credentials.TransportCredentials
		fault  string // "": it works
	}{
		{"trusted", good, trusts(good), ""},
		{"of another authority", good, trusts(other), "unknown authority"},
		{"expired", expired, trusts(expired), "expired"},
		{"of another address", elsewhere, trusts(elsewhere), "valid for 127.0.0.2"},
		{"client without TLS", good, insecure.NewCredentials(), "connection"},
		{"client of TLS 1.1", good, credentials.NewTLS(&tls.Config{RootCAs: good.pool,
			MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), "protocol version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := grpc.NewClient(serveTLS(t, c.server), grpc.WithTransportCredentials(c.client))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			got, err := pb.NewURLFrontierClient(conn).GetActive(soon(t), &pb.Local{})
			switch {
			case c.fault == "" && (err != nil || !got.State):
				t.Errorf("GetActive = %v, %v; want true", got, err)
			case c.fault != "" && (status.Code(err) != codes.Unavailable ||
				!strings.Contains(err.Error(), c.fault)):
				t.Errorf("GetActive: %v; want UNAVAILABLE with %s", err, c.fault)
			}
		})
	}
}

// TestBadCertificate refuses to start, and names the settings and files.
func TestBadCertificate(t *testing.T) {
	good, other := newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour)),
		newCertificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	for _, c := range []struct{ name, cert, key, want string }{
		{"no file", good.cert + "x", good.key, "no such file"},
		{"no certificate", file(t, "text", []byte("text")), good.key, "failed to find any PEM data"},
		{"two certificates", good.cert, good.cert, "found a certificate rather than a key"},
		{"key of another", good.cert, other.key, "does not match"},
		{"cut", file(t, "cut", []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")),
			good.key, "malformed certificate"},
	} {
		settings := configs.Default().Frontier
		settings.TLSCert, settings.TLSKey = c.cert, c.key
		_, err := frontier.New(frontier.Config{Settings: settings, Store: memory.New(), Log: zerolog.Nop()})
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "frontier.tls_cert "+c.cert+", frontier.tls_key "+c.key) {
			t.Errorf("%s: %v; want %s, and both settings", c.name, err, c.want)
		}
	}
}
