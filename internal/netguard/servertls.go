package netguard

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// ServerFiles names the PEM files of a listener's TLS.
type ServerFiles struct {
	Setting string // prefix of the settings' names, for errors: "spider.tls_" of spider.tls_cert

	Cert, Private string
	CA            string // the authorities that clients' certificates must be signed by; "": clients need none
}

// ServerTLS is the TLS of a listener, from files that may be replaced while it listens. It is safe
// for concurrent use.
type ServerTLS struct {
	files  ServerFiles
	loaded atomic.Pointer[tls.Config]
	tried  atomic.Pointer[sum] // of the files when Reload read them last, also if that failed
}

// LoadServerTLS reads the files.
func LoadServerTLS(files ServerFiles) (*ServerTLS, error) {
	s := &ServerTLS{files: files}
	return s, s.Reload()
}

// Reload reads the files again. Later handshakes use the new contents and resume no older session.
// After an error the former contents stay in use.
func (s *ServerTLS) Reload() error { return s.reload(s.files.sum()) }

// reload reads the files. now is their checksum, which the caller has just taken; reload returns an error if it
// has changed since.
func (s *ServerTLS) reload(now sum) error {
	conf, err := s.files.load()
	if s.files.sum() != now { // a chain that is half written fits the key, too
		return fmt.Errorf("%scert %s, %[1]skey %[3]s: changed while they were read", s.files.Setting, s.files.Cert,
			s.files.Private)
	}
	s.tried.Store(&now)
	if err != nil {
		return err
	}
	s.loaded.Store(conf)
	return nil
}

// Config returns the listener's settings. Each handshake uses the contents that were loaded last.
func (s *ServerTLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.loaded.Load(), nil },
	}
}

func (f ServerFiles) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Private)
	if err != nil {
		return nil, fmt.Errorf("%scert %s, %[1]skey %[3]s: %w", f.Setting, f.Cert, f.Private, err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if f.CA == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(f.CA)
	if err == nil {
		conf.ClientCAs, conf.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !conf.ClientCAs.AppendCertsFromPEM(pem) {
			err = errors.New("it holds no certificate in PEM form")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%sca %s: %w", f.Setting, f.CA, err)
	}
	return conf, nil
}
