package netguard

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// ClientFiles names the PEM files of a client's TLS; "" is none.
type ClientFiles struct{ Cert, Key, CA string }

// Client returns the TLS settings of a client that trusts the CA and presents the certificate, if
// there is one. It returns nil if no file is named.
func (f ClientFiles) Client() (*tls.Config, error) {
	if f == (ClientFiles{}) {
		return nil, nil
	}
	return f.load()
}

func (f ClientFiles) load() (*tls.Config, error) {
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
