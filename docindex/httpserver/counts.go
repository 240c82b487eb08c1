package httpserver

import (
	"fmt"
	"io"
	"net/http"

	"urlserver/docindex"
)

// serveCounts answers with the progress of a crawl ID, or of all crawls where there is none: the
// numbers that COUNT has in the spiders' line protocol.
func serveCounts(store Store, w http.ResponseWriter, r *http.Request, _ io.Reader) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	n, err := docindex.ProgressOf(r.Context(), store, query.Get("crawl"))
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	answerJSON(w, http.StatusOK, n)
	return nil
}
