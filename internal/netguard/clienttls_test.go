package netguard_test

import (
	"bytes"
	"crypto/tls"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/internal/netguard"
	"urlserver/internal/testkit/certstest"
)

// TestClientCertificateReplaced: a client presents the certificate that is in its files now, or the last one that
// was whole.
func TestClientCertificateReplaced(t *testing.T) {
	server, first, second := certstest.New(t), certstest.New(t), certstest.New(t)
	accepts := func(one certstest.Certificate) *netguard.ServerTLS {
		s, err := netguard.LoadServerTLS(netguard.ServerFiles{Cert: server.Cert, Private: server.Key, CA: one.Cert})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	onlyFirst, onlySecond := accepts(first), accepts(second)
	files := netguard.ClientFiles{Cert: t.TempDir() + "/cert.pem", Key: t.TempDir() + "/key.pem", CA: server.Cert}
	first.Write(t, files.Cert, files.Key)
	conf, err := files.Client()
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, first, second bool) {
		t.Helper()
		if err := greet(t, onlyFirst, conf); (err == nil) != first {
			t.Errorf("%s: a server that wants the first certificate: %v", what, err)
		}
		if err := greet(t, onlySecond, conf); (err == nil) != second {
			t.Errorf("%s: a server that wants the second certificate: %v", what, err)
		}
	}
	settle := func() {
		t.Helper()
		for _, file := range []string{files.Cert, files.Key} {
			if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("at first", true, false)
	if err := os.WriteFile(files.Cert, second.CertificatePEM, 0o600); err != nil {
		t.Fatal(err)
	}
	settle()
	check("with one file replaced", true, false)
	second.Write(t, files.Cert, files.Key)
	settle()
	check("with both replaced", false, true)
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	check("with a file gone", false, true)
}

// TestClientCertificateHalfWritten: a chain of which only the beginning is written is not presented.
func TestClientCertificateHalfWritten(t *testing.T) {
	own, issuer := certstest.New(t), certstest.New(t)
	synctest.Test(t, func(t *testing.T) {
		write := func(chain ...[]byte) {
			t.Helper()
			replace(t, own.Cert, bytes.Join(chain, nil))
			if err := os.Chtimes(own.Cert, time.Time{}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		write(own.CertificatePEM, issuer.CertificatePEM)
		present, err := netguard.ClientCertificate(own.Cert, own.Key)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, want int) {
			t.Helper()
			c, err := present(&tls.CertificateRequestInfo{Version: tls.VersionTLS13,
				SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}})
			if err != nil || len(c.Certificate) != want {
				t.Errorf("%s: a chain of %d certificates, %v; want %d", what, len(c.Certificate), err, want)
			}
		}
		check("at first", 2)
		write(own.CertificatePEM)
		check("the beginning is written", 2)
		write(own.CertificatePEM, issuer.CertificatePEM, issuer.CertificatePEM)
		check("all is written", 2)
		time.Sleep(time.Second)
		check("a second later", 3)
	})
}
