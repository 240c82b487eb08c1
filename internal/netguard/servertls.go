// Package certs gives a listener its TLS settings from files that may be replaced while it
// listens.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// Files name what a listener needs, in PEM form.
type Files struct {
	Setting string // what the settings' names begin with, for errors: "spider.tls_" of spider.tls_cert and so on

	Cert, Private string
	CA            string // clients need a certificate of one of these; "": they need none
}

// Server is the TLS of a listener. Safe for concurrent use.
type Server struct {
	files Files
	read  atomic.Pointer[tls.Config]
	tried atomic.Pointer[sum] // what the files held when they were read last, well or not
}

// Load reads the files.
func Load(files Files) (*Server, error) {
	s := &Server{files: files}
	return s, s.Reload()
}

// Reload reads the files again; handshakes from then on go by what they hold now, and
// sessions from before are not resumed. After an error nothing has changed.
func (s *Server) Reload() error {
	held := s.files.sum()
	s.tried.Store(&held)
	conf, err := read(s.files)
	if err != nil {
		return err
	}
	s.read.Store(conf)
	return nil
}

// Config is for a listener: it always asks for what was read last.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.read.Load(), nil },
	}
}

func read(files Files) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Private)
	if err != nil {
		return nil, fmt.Errorf("%scert %s, %[1]skey %[3]s: %w", files.Setting, files.Cert, files.Private, err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if files.CA == "" {
		return conf, nil
	}
	pem, err := os.ReadFile(files.CA)
	if err == nil {
		conf.ClientCAs, conf.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !conf.ClientCAs.AppendCertsFromPEM(pem) {
			err = errors.New("it holds no certificate in PEM form")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%sca %s: %w", files.Setting, files.CA, err)
	}
	return conf, nil
}
