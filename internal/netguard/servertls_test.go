package netguard_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urlserver/internal/netguard"
	"urlserver/internal/testkit/certstest"
)

// greet connects a client with the given settings, and returns an error unless the server reads
// from it. err has the errors of both sides.
func greet(t *testing.T, s *netguard.ServerTLS, client *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		conn, err := tls.NewListener(l, s.Config()).Accept()
		if err == nil {
			conn.SetDeadline(time.Now().Add(5 * time.Minute))
			_, err = io.ReadFull(conn, make([]byte, 1))
			conn.Close()
		}
		served <- err
	}()
	defer l.Close()
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err != nil {
		<-served
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x")); err != nil {
		<-served
		return err
	}
	return <-served
}

func TestReload(t *testing.T) {
	first, second := certstest.New(t), certstest.New(t)
	s, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_", Cert: first.Cert,
		Private: first.Key})
	if err != nil {
		t.Fatal(err)
	}
	client := first.Trusted()
	// a session from before must not hide the new certificate
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if err := greet(t, s, client); err != nil {
		t.Fatalf("with the first certificate: %v", err)
	}
	second.Write(t, first.Cert, first.Key)
	if err := greet(t, s, first.Trusted()); err != nil {
		t.Errorf("before Reload the first one holds: %v", err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := greet(t, s, client); err == nil {
		t.Error("after Reload the first certificate is still shown")
	}
	if err := greet(t, s, second.Trusted()); err != nil {
		t.Errorf("with the second certificate: %v", err)
	}
	if err := os.WriteFile(first.Key, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "spider.tls_cert") {
		t.Errorf("Reload of a broken key: %v", err)
	}
	if err := greet(t, s, second.Trusted()); err != nil {
		t.Errorf("after a failed Reload the second one holds: %v", err)
	}
}

func TestReloadOfAuthorities(t *testing.T) {
	server, one, other := certstest.New(t), certstest.New(t), certstest.New(t)
	s, err := netguard.LoadServerTLS(netguard.ServerFiles{Setting: "spider.tls_", Cert: server.Cert,
		Private: server.Key, CA: one.Cert})
	if err != nil {
		t.Fatal(err)
	}
	known := server.Trusted(one)
	known.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	if err := greet(t, s, known); err != nil {
		t.Errorf("a client that is known: %v", err)
	}
	for name, conf := range map[string]*tls.Config{"no certificate": server.Trusted(),
		"a stranger's": server.Trusted(other)} {
		if err := greet(t, s, conf); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
	other.Write(t, one.Cert, one.Key)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := greet(t, s, known); err == nil {
		t.Error("a client that is known no more: let in")
	}
	if err := greet(t, s, server.Trusted(other)); err != nil {
		t.Errorf("a client that is known now: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	c := certstest.New(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, want string
		files      netguard.ServerFiles
	}{
		{name: "certificate", want: "a.tls_cert " + c.Key, files: netguard.ServerFiles{Setting: "a.tls_",
			Cert: c.Key, Private: c.Cert}},
		{name: "no CA", want: "a.tls_ca", files: netguard.ServerFiles{Setting: "a.tls_", Cert: c.Cert,
			Private: c.Key, CA: empty + "x"}},
		{name: "empty CA", want: "holds no certificate", files: netguard.ServerFiles{Setting: "a.tls_",
			Cert: c.Cert, Private: c.Key, CA: empty}},
	} {
		if _, err := netguard.LoadServerTLS(x.files); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; want an error with %q", x.name, err, x.want)
		}
	}
}
