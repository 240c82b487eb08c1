package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"urlserver/configs"
	"urlserver/internal/netguard"
)

// options returns the options of every client of the brokers.
func (s *Service) options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.cfg.Brokers...),
		kgo.ClientID("urlserver"),
		kgo.DisableClientMetrics(),
		kgo.WithLogger(logger{s.log, &s.warnings}),
		kgo.WithHooks(&s.counters.connections),
	}
	if s.cfg.SASL() {
		opts = append(opts, kgo.SASL(mechanism(&s.cfg)))
	}
	if s.cfg.TLS() {
		cfg, err := tlsConfig(&s.cfg)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(cfg))
	}
	return opts, nil
}

func mechanism(cfg *configs.CrawlControl) sasl.Mechanism {
	auth := scram.Auth{User: cfg.SASLUsername, Pass: string(cfg.SASLPassword)}
	switch cfg.SASLMechanism {
	case configs.MechanismSHA256:
		return auth.AsSha256Mechanism()
	case configs.MechanismSHA512:
		return auth.AsSha512Mechanism()
	}
	return plain.Auth{User: auth.User, Pass: auth.Pass}.AsMechanism()
}

func tlsConfig(cfg *configs.CrawlControl) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLSCA != "" {
		text, err := os.ReadFile(cfg.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("monitor.tls_ca: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("monitor.tls_ca: %w", errors.New(cfg.TLSCA+" has no certificate"))
		}
	}
	if cfg.TLSCert != "" {
		present, err := netguard.ClientCertificate(cfg.TLSCert, cfg.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("monitor.tls_cert %s, monitor.tls_key %s: %w", cfg.TLSCert,
				cfg.TLSKey, err)
		}
		out.GetClientCertificate = present
	}
	return out, nil
}
