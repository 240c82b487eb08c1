package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"urlserver/internal/netguard"
	"urlserver/reservation/grpcserver"
)

// serveMetrics serves metrics over HTTP until ctx ends.
func serveMetrics(ctx context.Context, l net.Listener, server *grpcserver.Server, token string) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(server, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{
		Handler: guard(mux, token), MaxHeaderBytes: netguard.MaxHeader, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second,
		ConnContext:  netguard.ConnContext,
	}
	stop := context.AfterFunc(ctx, func() { web.Close() })
	defer stop()
	if err := web.Serve(netguard.LimitListener(l, token != "")); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// guard passes on requests with the token. Without it, a connection gets one request for /healthz.
// If token is "", all requests pass.
func guard(next http.Handler, token string) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if netguard.IsBearer(r.Header.Get("Authorization"), token) {
			netguard.MarkCallerAuthenticated(r.Context())
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close") // frees the place of an unauthenticated connection
		if r.URL.Path != "/healthz" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this service wants Authorization: Bearer TOKEN (--token)", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
