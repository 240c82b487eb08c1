package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"urlserver/configs"
	"urlserver/crawlcontrol"
	"urlserver/crawlcontrol/kafka"
	"urlserver/docindex"
)

// certificate makes one for 127.0.0.1 that signs itself, for servers and clients, and the files of
// it.
func certificate(t *testing.T) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return pair, certFile, keyFile
}

func TestSecurity(t *testing.T) {
	t.Parallel()
	pair, certFile, keyFile := certificate(t)
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	clientTLS := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}
	for _, c := range []struct{ protocol, mechanism string }{
		{protocol: configs.ProtocolTLS},
		{configs.ProtocolSASL, configs.MechanismPlain},
		{configs.ProtocolSASL, configs.MechanismSHA256},
		{configs.ProtocolSASLTLS, configs.MechanismSHA512},
	} {
		t.Run(c.protocol+" "+c.mechanism, func(t *testing.T) {
			var opts []kfake.Opt
			var with []kgo.Opt
			cfg := configs.CrawlControl{SecurityProtocol: c.protocol, SASLMechanism: c.mechanism}
			if cfg.TLS() {
				opts, with = append(opts, kfake.TLS(serverTLS)), append(with, kgo.DialTLSConfig(clientTLS))
				cfg.TLSCA, cfg.TLSCert, cfg.TLSKey = certFile, certFile, keyFile
			}
			if cfg.SASL() {
				opts = append(opts, kfake.EnableSASL(), kfake.Superuser(c.mechanism, "user", "right"),
					kfake.Superuser("PLAIN", "test", "test"))
				with = append(with, kgo.SASL(plain.Auth{User: "test", Pass: "test"}.AsMechanism()))
				cfg.SASLUsername, cfg.SASLPassword = "user", "right"
			}
			b := fakeBroker(t, opts...)
			all := settings(t, b)
			all.SecurityProtocol, all.SASLMechanism, all.SASLUsername,
				all.SASLPassword = cfg.SecurityProtocol, cfg.SASLMechanism, cfg.SASLUsername, cfg.SASLPassword
			all.TLSCA, all.TLSCert, all.TLSKey = cfg.TLSCA, cfg.TLSCert, cfg.TLSKey
			s := start(t, all, doer(newCrawls()))
			if !s.Notify(t.Context(), crawlcontrol.CompletedNotice(docindex.CrawlID{App: "testapp"},
				1, time.Now())) {
				t.Fatal("Notify: not acknowledged")
			}
			reader := &reader{t, client(t, b,
				append(with, kgo.ConsumeTopics(all.Prefix+".outbound_firehose"))...),
				all.Prefix + ".outbound_firehose"}
			reader.next(1)
			s.stop()
			if c.mechanism == configs.MechanismPlain {
				all.SASLPassword = "wrong"
				wrong := start(t, all, doer(newCrawls()))
				eventually(t, "the log says that it does not get on", func() bool {
					return strings.Contains(wrong.log.String(), `"level":"warn"`)
				})
				if strings.Contains(wrong.log.String(), `"wrong"`) {
					t.Errorf("the log has the password:\n%s", wrong.log)
				}
				if wrong.Counts().Connected {
					t.Error("with a wrong password it is said to be connected")
				}
				wrong.stop()
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	_, certFile, keyFile := certificate(t)
	base := configs.Default().Monitor
	base.Brokers, base.SecurityProtocol = []string{"127.0.0.1:1"}, configs.ProtocolTLS
	for _, c := range []struct {
		name, want string
		change     func(*configs.CrawlControl)
	}{
		{"no CA file", "monitor.tls_ca", func(m *configs.CrawlControl) { m.TLSCA = "/nonexistent" }},
		{"a CA file without certificate", "has no certificate",
			func(m *configs.CrawlControl) { m.TLSCA = keyFile }},
		{"no key", "monitor.tls_key", func(m *configs.CrawlControl) { m.TLSCert, m.TLSKey = certFile, certFile }},
	} {
		cfg := base
		c.change(&cfg)
		if _, err := kafka.New(kafka.Config{Settings: cfg, Log: zerolog.Nop()}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}
