package httpapi

import (
	"context"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"

	"urlserver/internal/netguard"
)

// ServeMetrics answers GET /metrics on l until ctx ends, for clients from some networks, without a
// token. The others get 403. It closes l.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener, from []netip.Prefix) {
	only := methods{http.MethodGet: func(w http.ResponseWriter, r *http.Request) error {
		if !netguard.InNetworks(r.RemoteAddr, from) {
			return httpError{http.StatusForbidden, "this listener is for the networks in frontier.allow_from"}
		}
		return s.serveMetrics(w, r)
	}}
	mux := http.NewServeMux()
	mux.Handle("/metrics", only)
	srv := &http.Server{Handler: mux, MaxHeaderBytes: netguard.MaxHeader, ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout: keepAlive, ErrorLog: stdlog.New(&netLog{log: s.log}, "", 0)}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	_ = srv.Serve(netguard.LimitListener(l, false)) // it ends with ctx, or the listener is broken
}
