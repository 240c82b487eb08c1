package netguard

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
	"time"
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
		present, err := ClientCertificate(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate %s, key %s: %w", f.Cert, f.Key, err)
		}
		cfg.GetClientCertificate = present
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

// writing is the time for which a file that has changed may not be whole yet.
const writing = time.Second

// ClientCertificate returns a function for [tls.Config] that presents the certificate in two PEM files. It reads
// the files for each handshake, so a certificate may be replaced while the client runs. While the files cannot
// be used, as when only one of them is replaced yet, or may not be whole, it presents the last one that could.
func ClientCertificate(cert, key string) (
	func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(&pair)
	return func(wanted *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if pair, err := tls.LoadX509KeyPair(cert, key); err == nil && unchanged(cert, key) {
			last.Store(&pair)
		}
		pair := last.Load()
		if wanted.SupportsCertificate(pair) != nil {
			return &tls.Certificate{}, nil // the server says what it wants
		}
		return pair, nil
	}, nil
}

// unchanged reports whether files have stayed the same for some time: of a chain that is half written the first
// certificate fits the key.
func unchanged(files ...string) bool {
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || time.Since(info.ModTime()).Abs() < writing {
			return false
		}
	}
	return true
}
