package netguard_test

import (
	"os"
	"testing"

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
	check("at first", true, false)
	if err := os.WriteFile(files.Cert, second.CertificatePEM, 0o600); err != nil {
		t.Fatal(err)
	}
	check("with one file replaced", true, false)
	second.Write(t, files.Cert, files.Key)
	check("with both replaced", false, true)
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	check("with a file gone", false, true)
}
