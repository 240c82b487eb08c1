package tikv

import (
	"errors"
	"testing"
	"time"

	"urlserver/internal/netguard"
	"urlserver/reservation"
	"urlserver/reservation/tikv/tikvtest"
)

// TestAway: while TiKV is away nothing is reserved, and each call says so; when it is back, all is
// as it was.
func TestAway(t *testing.T) {
	server := tikvtest.Start(t)
	s, err := New(Config{Addrs: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, host := range []string{"a.test", "b.test"} {
		if added, err := s.AddHost(t.Context(), host, time.Time{}); err != nil || !added {
			t.Fatalf("AddHost = %v, %v", added, err)
		}
	}
	held, err := s.TryReserve(t.Context(), "a.test", time.Hour, "me")
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := s.TryReserve(t.Context(), "b.test", time.Hour, "me"); err == nil ||
		errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve while TiKV is away = %v; want an error of its own", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Minute); ; {
		if _, err = s.TryReserve(t.Context(), "b.test", time.Hour, "me"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("TryReserve five minutes after TiKV came back: %v", err)
		}
	}
	if _, err := s.TryReserve(t.Context(), "a.test", time.Hour, "you"); !errors.Is(err, reservation.ErrNotNow) {
		t.Errorf("TryReserve of a busy host = %v; want ErrNotNow", err)
	}
	if err := s.ReleaseHost(t.Context(), "a.test", held.Token, time.Time{}); err != nil {
		t.Errorf("ReleaseHost: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	for name, files := range map[string]netguard.ClientFiles{
		"a certificate without a CA": {Cert: "cert.pem", Key: "key.pem"},
		"no such file":               {CA: "/none/such"},
	} {
		if _, err := New(Config{Addrs: []string{"127.0.0.1:1"}, TLS: files}); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
}
