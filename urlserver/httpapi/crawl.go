package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"urlserver/docindex"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
)

// Scopes keeps the scopes of crawls.
type Scopes interface {
	Crawl(ctx context.Context, id string) (scoped.Info, error)
	SetCrawl(ctx context.Context, id string, to scoped.Change) error
	TakeSettings(ctx context.Context, id string, text []byte) error
}

// dumped is a store as a dump is read from it and fills it.
type dumped struct {
	Store
	scopes Scopes // nil: the index keeps none
}

// SetCrawlSettings implements [DumpStore].
func (d dumped) SetCrawlSettings(ctx context.Context, id string, text []byte) error {
	if d.scopes == nil {
		return d.Store.SetCrawlSettings(ctx, id, text)
	}
	return d.scopes.TakeSettings(ctx, id, text)
}

// crawlReply is the reply of /api/crawls/{crawl}.
type crawlReply struct {
	Crawl      string            `json:"crawl"`
	Scope      scope.Scope       `json:"scope"`
	Weight     float64           `json:"weight"`
	Stopped    bool              `json:"stopped"`
	Scheduled  uint64            `json:"scheduled"`
	InTransit  uint64            `json:"in_transit"`
	Completed  uint64            `json:"completed"`
	OutOfScope uint64            `json:"out_of_scope"` // not taken, or ended; since the daemon's start if the index is not on disk
	Rules      map[string]uint64 `json:"rules"`        // these by the rule that refused them
}

const maxCrawlID = 1000 // bytes

const noScopes = "this daemon keeps no crawls: docindex.kind says that its index is elsewhere; ask there"

// crawlID returns the crawl ID of a request.
func (s *Server) crawlID(r *http.Request) (string, error) {
	id := r.PathValue("crawl")
	switch {
	case s.scopes == nil:
		return "", httpError{http.StatusNotFound, noScopes}
	case len(id) > maxCrawlID || !utf8.ValidString(id):
		return "", badRequestf("crawl: its ID has %d bytes; UTF-8 of at most %d is taken", len(id), maxCrawlID)
	case strings.ContainsRune(id, 0):
		return "", badRequestf("crawl: its ID has the character U+0000")
	}
	return id, nil
}

func (s *Server) serveCrawl(w http.ResponseWriter, r *http.Request) error {
	id, err := s.crawlID(r)
	if err != nil {
		return err
	}
	return s.replyCrawl(w, r, id)
}

func (s *Server) replyCrawl(w http.ResponseWriter, r *http.Request, id string) error {
	i, err := s.scopes.Crawl(r.Context(), id)
	if err != nil {
		return crawlError(err)
	}
	reply := crawlReply{
		Crawl: id, Scope: i.Scope, Weight: i.Weight, Stopped: i.Stopped, Scheduled: i.Scheduled,
		InTransit: i.InTransit, Completed: i.Completed, OutOfScope: i.OutOfScope(), Rules: map[string]uint64{},
	}
	for rule, n := range i.Refused {
		if rule := scope.Rule(rule); n > 0 && rule != scope.InScope {
			reply.Rules[rule.String()] = n
		}
	}
	writeJSON(w, http.StatusOK, reply)
	return nil
}

// crawlError returns the error to answer for one of the store.
func crawlError(err error) error {
	switch {
	case errors.Is(err, docindex.ErrUnknown):
		return httpError{http.StatusNotFound, "no such crawl: it has neither settings nor documents"}
	case errors.Is(err, scoped.ErrStopped):
		return httpError{http.StatusConflict, err.Error()}
	case errors.Is(err, docindex.ErrFull), errors.Is(err, docindex.ErrTooManyCrawls):
		return httpError{http.StatusInsufficientStorage, err.Error()}
	}
	return err
}

// setCrawl sets scope and weight of a crawl.
func (s *Server) setCrawl(w http.ResponseWriter, r *http.Request) error {
	id, err := s.crawlID(r)
	if err != nil {
		return err
	}
	to, err := readCrawl(w, r)
	if err != nil {
		return err
	}
	if err := s.scopes.SetCrawl(r.Context(), id, to); err != nil {
		if _, bad := errors.AsType[*scope.Fault](err); bad || errors.Is(err, scoped.ErrWeight) {
			return badRequestf("%v", err)
		}
		return crawlError(err)
	}
	s.listCrawlsAnew()
	event := s.log.Info().Str("crawl", id).Str("by", r.RemoteAddr)
	if to.Scope != nil {
		event.RawJSON("scope", to.Scope.Text())
	}
	if to.Weight > 0 {
		event.Float64("weight", to.Weight)
	}
	event.Msg("operator changes a crawl")
	return s.replyCrawl(w, r, id)
}

// readCrawl reads the body of a request that sets a crawl.
func readCrawl(w http.ResponseWriter, r *http.Request) (to scoped.Change, err error) {
	text, err := readBody(w, r, scope.MaxText+maxBody)
	if err != nil {
		return to, err
	}
	var body *struct {
		Scope  json.RawMessage `json:"scope"`
		Weight *float64        `json:"weight"`
	}
	if err := decodeJSON(text, &body); err != nil {
		return to, err
	}
	if body == nil {
		return to, badRequestf("body: a JSON null; an object is wanted")
	}
	if body.Weight != nil {
		if *body.Weight <= 0 {
			return to, badRequestf("%v", scoped.ErrWeight)
		}
		to.Weight = *body.Weight
	}
	if len(body.Scope) == 0 || string(body.Scope) == "null" {
		return to, nil // clients say null for what they do not set
	}
	sc, err := scope.Parse(body.Scope)
	switch _, placed := errors.AsType[*scope.Fault](err); {
	case placed:
		return to, badRequestf("scope.%v", err)
	case err != nil:
		return to, badRequestf("%v", err)
	}
	to.Scope = &sc
	return to, nil
}

// endCrawl stops a crawl for good.
func (s *Server) endCrawl(w http.ResponseWriter, r *http.Request) error {
	id, err := s.crawlID(r)
	if err != nil {
		return err
	}
	if _, err := s.scopes.Crawl(r.Context(), id); err != nil {
		return crawlError(err)
	}
	if err := s.stopCrawl(r.Context(), id); err != nil {
		return crawlError(err)
	}
	s.listCrawlsAnew()
	s.log.Info().Str("crawl", id).Str("by", r.RemoteAddr).Msg("operator stops a crawl")
	return s.replyCrawl(w, r, id)
}

// listCrawlsAnew has a list of crawls from before a change not shown again.
func (s *Server) listCrawlsAnew() {
	if s.crawls != nil {
		s.crawls.changed.Add(1)
	}
}
