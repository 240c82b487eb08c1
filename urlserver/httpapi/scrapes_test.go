package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// A listener for /metrics alone wants no token, and serves the networks that are allowed.
func TestServeMetrics(t *testing.T) {
	r := newRig(t, setup{token: "secret"})
	for network, want := range map[string]int{"127.0.0.0/8": 200, "10.0.0.0/8": 403} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.server.ServeMetrics(ctx, l, []netip.Prefix{netip.MustParsePrefix(network)})
		}()
		for path, status := range map[string]int{"/metrics": want, "/api/status": 404} {
			resp, err := http.Get("http://" + l.Addr().String() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != status || status == 200 && !strings.Contains(string(body), "urlserver_") {
				t.Errorf("%s allowed, %s: %d %.100s; want %d", network, path, resp.StatusCode, body, status)
			}
		}
		cancel()
		<-ended
	}
}
