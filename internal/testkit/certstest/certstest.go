// Package certstest makes certificates for tests.
package certstest

import (
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
	"testing"
	"time"
)

// Certificate is a self-signed certificate for 127.0.0.1, and the files of the certificate and its
// key.
type Certificate struct {
	TLS                    tls.Certificate
	Cert, Key              string // file names
	CertificatePEM, KeyPEM []byte
}

// New makes a certificate in a temporary folder of the test.
func New(t testing.TB) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Unix(0, 0), NotAfter: time.Now().Add(100 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := Certificate{
		Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
	c.Write(t, c.Cert, c.Key)
	if c.TLS, err = tls.LoadX509KeyPair(c.Cert, c.Key); err != nil {
		t.Fatal(err)
	}
	return c
}

// Write also writes the certificate and its key to other files.
func (c Certificate) Write(t testing.TB, cert, key string) {
	t.Helper()
	for file, text := range map[string][]byte{cert: c.CertificatePEM, key: c.KeyPEM} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Trusted returns the TLS settings of a client that trusts this server certificate and shows its
// own.
func (c Certificate) Trusted(own ...Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(c.TLS.Leaf)
	conf := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	for _, o := range own {
		conf.Certificates = append(conf.Certificates, o.TLS)
	}
	return conf
}
