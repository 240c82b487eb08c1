package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"urlserver/internal/netguard"
	"urlserver/internal/testkit/certstest"
	"urlserver/reservation"
	"urlserver/reservation/memory"
)

// patience ends a test that waits for what does not come; it is no measure of anything.
const patience = 5 * time.Minute

// heard is a log whose lines are asked for one by one.
type heard chan string

func (h heard) Write(line []byte) (int, error) { h <- string(line); return len(line), nil }

// until returns the address of the next line whose message has text in it.
func (h heard) until(t *testing.T, text string) (address string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line := <-h:
			var entry struct{ Message, Address string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(entry.Message, text) {
				return entry.Address
			}
		case <-timeout:
			t.Fatalf("the log has no %q", text)
		}
	}
}

// start serves from memory until the test ends.
func start(t *testing.T, set settings) heard {
	t.Helper()
	set.stores = Stores{Names: []string{"memory"}, Local: "memory",
		Open: func(Opening) (reservation.Store, func(), error) {
			return memory.New(memory.Config{}), func() {}, nil
		}}
	set.opening.Store, set.janitor, set.listen = "memory", time.Hour, "127.0.0.1:0"
	log, ended := make(heard, 100), make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- serve(ctx, set, zerolog.New(log)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return log
}

// TestSilence: while silent connections hold all places, callers wait, and are served once those
// have been cut.
func TestSilence(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the ten seconds after which silent connections are cut")
	}
	t.Parallel()
	log := start(t, settings{metrics: "127.0.0.1:0"})
	metrics := log.until(t, "metrics")
	for _, door := range []struct {
		name, addr string
		call       func(ctx context.Context, addr string) error
	}{
		{name: "metrics", addr: metrics, call: callHTTP},
		{name: "service", addr: log.until(t, "serving"), call: callGRPC},
	} {
		t.Run(door.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			for range netguard.MaxConns {
				conn, err := net.Dial("tcp", door.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := door.call(ctx, door.addr); err != nil {
				t.Error(err)
			}
			if waited := time.Since(began); waited < 10*time.Second {
				t.Errorf("a caller was served after %v, beside as many connections as may be", waited)
			}
		})
	}
}

func callHTTP(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func callGRPC(ctx context.Context, addr string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{},
		grpc.WaitForReady(true))
	return err
}

// TestLongHeader: no request to the metrics makes the service keep more than a header of the usual
// length.
func TestLongHeader(t *testing.T) {
	log := start(t, settings{metrics: "127.0.0.1:0"})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+log.until(t, "metrics")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Long", strings.Repeat("x", netguard.MaxHeader+4096)) // net/http lets that much more pass
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %s", resp.Status)
	}
}

// TestCertificatesChange: a certificate that replaces another is shown to those who connect then; a
// broken one changes nothing.
func TestCertificatesChange(t *testing.T) {
	first, second := certstest.New(t), certstest.New(t)
	log := start(t, settings{looks: 10 * time.Millisecond,
		files: netguard.ServerFiles{Setting: "--tls-", Cert: first.Cert, Private: first.Key}})
	addr := log.until(t, "serving")
	shown := func(c certstest.Certificate) error { return callTLS(t, addr, c) }
	if err := shown(first); err != nil {
		t.Fatalf("the first certificate: %v", err)
	}
	if err := os.WriteFile(first.Key, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	log.until(t, "cannot be used")
	if err := shown(first); err != nil {
		t.Errorf("with a broken key: %v", err)
	}
	second.Write(t, first.Cert, first.Key)
	log.until(t, "were read again")
	if err := shown(second); err != nil {
		t.Errorf("the second certificate: %v", err)
	}
	if shown(first) == nil {
		t.Error("the first certificate is shown still")
	}
}

// callTLS calls over a new connection, trusting a certificate.
func callTLS(t *testing.T, addr string, c certstest.Certificate) error {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(c.Trusted())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

func TestCertificateFaults(t *testing.T) {
	own := certstest.New(t)
	for _, c := range []struct {
		files netguard.ServerFiles
		want  string
	}{
		{files: netguard.ServerFiles{Private: own.Key}, want: "need --tls-cert"},
		{files: netguard.ServerFiles{CA: own.Cert}, want: "need --tls-cert"},
		{files: netguard.ServerFiles{Cert: own.Cert, CA: own.Cert},
			want: "--tls-cert " + own.Cert + ", --tls-key :"},
		{files: netguard.ServerFiles{Cert: own.Cert, Private: own.Key, CA: own.Key},
			want: "--tls-ca " + own.Key},
	} {
		c.files.Setting = "--tls-"
		if _, err := (settings{files: c.files}).certificates(); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want an error with %q", c.files, err, c.want)
		}
	}
}
