package etcd

import (
	"strings"
	"testing"
	"time"

	"urlserver/internal/testkit/certstest"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

// works adds a host through a store, and returns the result.
func works(t *testing.T, cfg Config) error {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.AddHost(t.Context(), "a.test", time.Time{})
	return err
}

func TestLogin(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	admin := cluster.Client(0)
	defer admin.Close()
	if _, err := admin.UserAdd(t.Context(), "root", "secret"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UserGrantRole(t.Context(), "root", "root"); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AuthEnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		return works(t, Config{Addrs: cluster.Addrs(), User: "root", Password: "secret"})
	})
	for name, cfg := range map[string]Config{
		"authentication failed": {Addrs: cluster.Addrs(), User: "root", Password: "wrong"},
		"user name is empty":    {Addrs: cluster.Addrs()},
	} {
		if err := works(t, cfg); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), cfg.Addrs[0]) {
			t.Errorf("an error = %v; want one that says %q, and names %s", err, name, cfg.Addrs[0])
		}
	}
}

func TestTLS(t *testing.T) {
	own := certstest.New(t)
	cluster := etcdtest.StartTLS(t, own)
	eventually(t, func() error { return works(t, Config{Addrs: cluster.Addrs(), TLS: own.Trusted(own)}) })
	if err := works(t, Config{Addrs: cluster.Addrs(), TLS: own.Trusted()}); err == nil {
		t.Error("without a certificate: it was taken")
	}
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no address":     {},
		"no password":    {Addrs: []string{"127.0.0.1:1"}, User: "me"},
		"a nobody's one": {Addrs: []string{"127.0.0.1:1"}, Password: "secret"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
}
