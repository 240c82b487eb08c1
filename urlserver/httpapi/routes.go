package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"urlserver/docindex/httpserver"
	"urlserver/internal/netguard"
)

// maxBody bounds the bodies of the API.
const maxBody = 4 << 10

// handler answers a request, or returns the error to answer.
type handler func(w http.ResponseWriter, r *http.Request) error

// routeTable has all paths.
func (s *Server) routeTable() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, m := range map[string]methods{
		"/{$}":                {http.MethodGet: s.serveDashboard},
		loginPath:             {http.MethodGet: s.serveLogin, http.MethodPost: s.login},
		"/logout":             {http.MethodPost: s.logout},
		assetsPath + "{file}": {http.MethodGet: serveAsset},
		"/healthz":            {http.MethodGet: s.serveHealth},
		"/readyz":             {http.MethodGet: s.serveReady},
		"/metrics":            {http.MethodGet: s.serveMetrics},
		"/api/status":         {http.MethodGet: s.serveStatus},
		"/api/slots":          {http.MethodGet: s.serveSlots},
		"/api/slots/map":      {http.MethodGet: s.serveMap},
		"/api/slots/{slot}":   {http.MethodGet: s.serveSlot},
		"/api/top":            {http.MethodGet: s.serveTop},
		"/api/live":           {http.MethodGet: s.serveLive},
		"/api/history":        {http.MethodGet: s.serveHistory},
		"/api/warnings":       {http.MethodGet: s.serveWarnings},
		"/api/settings":       {http.MethodGet: s.serveSettings},
		"/api/crawls":         {http.MethodGet: s.serveCrawls},
		"/api/crawls/{crawl}": {http.MethodGet: s.serveCrawl, http.MethodPut: s.setCrawl,
			http.MethodDelete: s.endCrawl},
		"/api/hosts":              {http.MethodGet: s.serveHosts},
		"/api/hosts/{host}":       {http.MethodGet: s.serveHost},
		"/api/hosts/{host}/block": {http.MethodPost: s.serveBlock},
		"/api/hosts/{host}/delay": {http.MethodPost: s.serveDelay},
		"/api/pause":              {http.MethodPost: s.pause(true)},
		"/api/actions":            {http.MethodPost: s.serveActions},
		"/api/resume":             {http.MethodPost: s.pause(false)},
		"/api/reload":             {http.MethodPost: s.serveReload},
	} {
		mux.Handle(pattern, m)
	}
	mux.Handle("/docindex/", s.docIndex())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, httpError{http.StatusNotFound, "no such path"})
	})
	return mux
}

// docIndex serves the embedded index, or 404 where there is none.
func (s *Server) docIndex() http.Handler {
	if s.store == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeError(w, httpError{http.StatusNotFound,
				"this daemon has no doc index of its own: docindex.kind says it is elsewhere; ask there"})
		})
	}
	inner := httpserver.Handler(s.store)
	mux := http.NewServeMux()
	candidates := s.limitBodies(inner)
	mux.HandleFunc("/docindex/candidates", func(w http.ResponseWriter, r *http.Request) {
		s.daemon.NoteRemoteLease()
		candidates.ServeHTTP(w, r)
	})
	mux.Handle("/docindex/outcomes", s.limitBodies(inner))
	if s.dump != nil {
		mux.Handle("/docindex/dump", s.dump(dumped{s.store, s.scopes}))
	}
	mux.Handle("/", inner)
	return mux
}

// methods has the handlers of one path, by method.
type methods map[string]handler

// ServeHTTP answers HEAD as GET; net/http drops the body.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	do, ok := m[method]
	if !ok {
		w.Header().Set("Allow", m.allow())
		writeError(w, httpError{http.StatusMethodNotAllowed,
			fmt.Sprintf("%.20s is not possible here; use %s", r.Method, m.allow())})
		return
	}
	if err := do(w, r); err != nil {
		writeError(w, netguard.ReasonOf(r.Context(), err))
	}
}

func (m methods) allow() string {
	names := slices.Collect(maps.Keys(m))
	if m[http.MethodGet] != nil {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// httpError is an error with its HTTP status.
type httpError struct {
	status int
	text   string
}

func (r httpError) Error() string { return r.text }

func badRequestf(format string, args ...any) error {
	return httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// writeError answers with an error. One that is no httpError comes from the daemon, which has
// stopped or did not answer in time: 503.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if r, ok := errors.AsType[httpError](err); ok {
		status = r.status
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// writeJSON answers with v as JSON.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // it fails for a closed connection only
}

// readJSON reads a small body of exactly one JSON object into v.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	text, err := readBody(w, r, maxBody)
	if err != nil {
		return err
	}
	return decodeJSON(text, v)
}

// readBody reads a body of at most so many bytes.
func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, badRequestf("body: it has more than %d bytes", most)
	}
	if err != nil {
		return nil, badRequestf("body: %v", err)
	}
	return text, nil
}

// decodeJSON reads exactly one JSON object into v.
func decodeJSON(text []byte, v any) error {
	in := json.NewDecoder(strings.NewReader(string(text)))
	in.DisallowUnknownFields()
	err := in.Decode(v)
	if kind, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong && kind.Field != "" {
		return badRequestf("body: %s: a JSON %s is of the wrong type", kind.Field, kind.Value)
	} else if wrong {
		return badRequestf("body: a JSON %s; an object is wanted", kind.Value)
	}
	if errors.Is(err, io.EOF) {
		return badRequestf("body: it is empty; a JSON object is wanted")
	}
	if err != nil {
		return badRequestf("body: %v", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return badRequestf("body: more behind the JSON object")
	}
	return nil
}
