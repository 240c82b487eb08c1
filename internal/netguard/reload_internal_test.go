package netguard

import (
	"bytes"
	"os"
	"testing"

	"urlserver/internal/testkit/certstest"
)

// TestReloadOfChangingFiles: files that have changed since they were seen to stay the same are not used. They are
// when they are seen to stay the same again.
func TestReloadOfChangingFiles(t *testing.T) {
	own, issuer := certstest.New(t), certstest.New(t)
	write := func(chain ...[]byte) {
		t.Helper()
		if err := os.WriteFile(own.Cert, bytes.Join(chain, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(own.CertificatePEM, issuer.CertificatePEM)
	s, err := LoadServerTLS(ServerFiles{Setting: "spider.tls_", Cert: own.Cert, Private: own.Key})
	if err != nil {
		t.Fatal(err)
	}
	seen := s.files.sum()
	write(own.CertificatePEM)
	if err := s.reload(seen); err == nil {
		t.Error("files that change are used")
	}
	if chain := s.loaded.Load().Certificates[0].Certificate; len(chain) != 2 {
		t.Errorf("a chain of %d certificates is in use; want the former, of 2", len(chain))
	}
	if now := s.files.sum(); now == *s.tried.Load() {
		t.Error("Watch would not read the files again")
	}
}
