package export

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"urlserver/docindex"
	"urlserver/internal/netguard"
)

// Source is what [Write] uses of a doc index.
type Source interface {
	Settings(ctx context.Context, visit func(*docindex.Setting) bool) error
	Crawls(ctx context.Context) ([]string, error)
	List(ctx context.Context, s docindex.Scope, visit func(*docindex.Document) bool) error
	CrawlSettings(ctx context.Context, since uint64, visit func(crawl string, text []byte)) (uint64, error)
}

// Target is what [Read] uses of a doc index.
type Target interface {
	Set(ctx context.Context, s docindex.Setting) error
	Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error)
	SetCrawlSettings(ctx context.Context, crawl string, text []byte) error
}

// Store is both.
type Store interface {
	Source
	Target
}

// Handler serves /docindex/dump over store: GET is [Write]; POST is [Read] of a body that may be
// packed. The server around it authenticates clients and bounds how long a body may take.
func Handler(store Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			serveWrite(store, w, r)
		case http.MethodPost:
			serveRead(store, w, r)
		default:
			w.Header().Set("Allow", "GET, POST")
			answer(w, http.StatusMethodNotAllowed, failure{Error: r.Method + " is not possible here; use GET or POST"})
		}
	})
}

// failure is the body of an error answer, and the last line of a dump that could not be finished.
type failure struct {
	Error string `json:"error"`
}

func failureOf(r *http.Request, err error) failure {
	return failure{netguard.ReasonOf(r.Context(), err).Error()}
}

func serveWrite(store Store, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := Write(r.Context(), store, w); err != nil {
		_ = json.NewEncoder(w).Encode(failureOf(r, err)) // a client that has gone reads nothing
	}
}

func serveRead(store Store, w http.ResponseWriter, r *http.Request) {
	body, err := Unpack(r.Body, "")
	if err != nil {
		answer(w, http.StatusBadRequest, failure{"body: " + err.Error()})
		return
	}
	defer body.Close()
	res, err := Read(r.Context(), store, body)
	if err == nil {
		answer(w, http.StatusOK, res)
		return
	}
	status := http.StatusInternalServerError
	if _, broken := errors.AsType[*BrokenError](err); broken {
		status = http.StatusBadRequest
	}
	answer(w, status, struct {
		failure
		Result
	}{failureOf(r, err), res})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}
