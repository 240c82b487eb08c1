package access

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Files names PEM files; "" is none.
type Files struct{ Cert, Key, CA string }

// Client is the TLS of a caller that trusts the CA, and shows the certificate if there is one. It is nil if no file is
// named.
func (f Files) Client() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	return f.load()
}

func (f Files) load() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Cert != "" || f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate %s, key %s: %w", f.Cert, f.Key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("TLS CA: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TLS CA: no certificate in %s", f.CA)
		}
	}
	return cfg, nil
}
