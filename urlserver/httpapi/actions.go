package httpapi

import (
	"context"
	"io"
	"net/http"

	"urlserver/crawlcontrol"
)

// Actions does requests of crawl control; [crawlcontrol.Handler] is one.
type Actions interface {
	Do(ctx context.Context, messages [][]byte) (replies []crawlcontrol.Reply, done int, err error)
}

var _ Actions = (*crawlcontrol.Handler)(nil)

// serveActions processes one request of crawl control. Request and reply are the JSON of Kafka's.
func (s *Server) serveActions(w http.ResponseWriter, r *http.Request) error {
	if s.actions == nil {
		return httpError{http.StatusNotFound,
			"this daemon keeps no crawls: its doc index is elsewhere, or cannot; ask there"}
	}
	// with one byte more it is refused as too long
	text, err := io.ReadAll(io.LimitReader(r.Body, crawlcontrol.MaxMessage+1))
	if err != nil {
		return badRequestf("body: %v", err)
	}
	// A request is completed even if the client has gone: half a stop would be worse than either.
	replies, _, err := s.actions.Do(context.WithoutCancel(r.Context()), [][]byte{text})
	if err != nil {
		return crawlError(err)
	}
	status := http.StatusOK
	if replies[0].Refused {
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(replies[0].Body, '\n')); err == nil { // a client that has gone may ask again
		replies[0].Acknowledged(context.WithoutCancel(r.Context()))
	}
	return nil
}
