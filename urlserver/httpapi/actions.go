package httpapi

import (
	"context"
	"io"
	"net/http"

	"urlserver/crawlcontrol"
)

// Actions does requests of crawl control; [monitor.Monitor] is one.
type Actions interface {
	Do(ctx context.Context, messages [][]byte) (replies []crawlcontrol.Reply, done int, err error)
}

var _ Actions = (*crawlcontrol.Handler)(nil)

// serveActions does one request of crawl control, the same JSON as over Kafka, and answers with the same reply.
func (s *Server) serveActions(w http.ResponseWriter, r *http.Request) error {
	if s.actions == nil {
		return httpError{http.StatusNotFound, "this daemon keeps no crawls: its doc index is elsewhere, or cannot; ask there"}
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, crawlcontrol.MaxMessage+1)) // one byte more is refused as too long
	if err != nil {
		return badRequestf("body: %v", err)
	}
	// What is begun is done, though nobody may wait for it any more: half a stop is worse than either.
	replies, _, err := s.actions.Do(context.WithoutCancel(r.Context()), [][]byte{text})
	if err != nil {
		return err
	}
	status := http.StatusOK
	if replies[0].Refused {
		status = http.StatusBadRequest
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(append(replies[0].Body, '\n')); err == nil { // who has gone may ask again
		replies[0].Acknowledged(context.WithoutCancel(r.Context()))
	}
	return nil
}
