package command

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

	"urlserver/access"
	"urlserver/reservation/service"
)

// serveMetrics answers over HTTP until ctx ends.
func serveMetrics(ctx context.Context, l net.Listener, server *service.Server, token string) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(server, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if token != "" && !access.IsBearer(r.Header.Get("Authorization"), token) {
			http.Error(w, "this service wants Authorization: Bearer TOKEN (--token)", http.StatusUnauthorized)
			return
		}
		access.TrustCaller(r.Context())
		metrics.ServeHTTP(w, r)
	})
	web := &http.Server{
		Handler: mux, MaxHeaderBytes: access.MaxHeader, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		ConnContext: access.ConnContext,
	}
	stop := context.AfterFunc(ctx, func() { web.Close() })
	defer stop()
	if err := web.Serve(access.Door(l, token != "")); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}
