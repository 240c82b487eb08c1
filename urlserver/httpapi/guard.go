package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"urlserver/internal/netguard"
	"urlserver/urlserver/httpapi/login"
)

// handler puts deadlines, headers, authorisation and origin checks before the routes.
func (s *Server) handler() http.Handler {
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			if s.wantsLogin(r) {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
				return
			}
			if s.gate != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			writeError(w, err)
			return
		}
		r, done := outliving(r)
		defer done()
		s.routes.ServeHTTP(w, r)
	})
	return s.withDeadlines(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Content-Security-Policy", closedPolicy)
		if s.gate != nil && !s.gate.Bearer(r) && !s.gate.Session(r, time.Now()) {
			// an unauthenticated client gets one answer a connection, so that others have room
			h.Set("Connection", "close")
		} else {
			netguard.MarkCallerAuthenticated(r.Context())
		}
		if r.URL.Path == "/healthz" || strings.HasPrefix(r.URL.Path, assetsPath) {
			s.routes.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}))
}

// admit returns why a request must not be served, or nil.
func (s *Server) admit(r *http.Request) error {
	if err := s.authorize(r); err != nil {
		return err
	}
	if s.gate == nil && !s.isOwnHost(r.Host) {
		return httpError{http.StatusForbidden, "the Host header names neither localhost, nor an IP " +
			"address, nor the host of http.listen, nor one of http.hosts: " +
			"a page of another site may be behind this request; add the name to http.hosts, or set " +
			"http.token to be reachable by any name"}
	}
	if s.cross.Check(r) != nil {
		return httpError{http.StatusForbidden, "this request comes from a page of another site"}
	}
	return nil
}

// authorize requires the token, or a session that began with it. The login page needs neither.
func (s *Server) authorize(r *http.Request) error {
	switch {
	case s.gate == nil, r.URL.Path == loginPath, s.gate.Bearer(r):
		return nil
	case !s.gate.Session(r, time.Now()):
		return httpError{http.StatusUnauthorized,
			"this needs Authorization: Bearer with the token of the settings (http.token)"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !login.OwnPage(r):
		return httpError{http.StatusForbidden, "this request comes with a session, but not from a page of this server"}
	}
	return nil
}

// wantsLogin reports whether an unauthenticated browser asks for the dashboard.
func (s *Server) wantsLogin(r *http.Request) bool {
	return s.gate != nil && r.Method == http.MethodGet && r.URL.Path == "/" && s.authorize(r) != nil &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

// isOwnHost reports whether a Host header is an IP address or one of the listener's own names.
// Other names may be part of a DNS rebinding attack. Without the header, as HTTP/1.0 allows, the
// client is no browser.
func (s *Server) isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.TrimSuffix(host, ".")
	return host == "" || strings.EqualFold(host, "localhost") || slices.ContainsFunc(s.hosts, func(own string) bool {
		return strings.EqualFold(host, strings.TrimSuffix(own, "."))
	})
}
