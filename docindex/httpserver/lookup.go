package httpserver

import (
	"encoding/json"
	"errors"
	"net/http"

	"urlserver/docindex"
)

// lookedUp is what a spider is told of a document.
type lookedUp struct {
	DocID    string          `json:"doc_id"`
	URL      string          `json:"url"`
	State    string          `json:"state"`
	Priority int32           `json:"priority"`
	Crawl    string          `json:"crawl,omitempty"`
	Key      string          `json:"key"`
	Metadata json.RawMessage `json:"metadata"`
}

// serveLookup answers with a stored document.
func serveLookup(store Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			answerJSON(w, http.StatusMethodNotAllowed, failure{Error: r.Method + " is not possible here; use GET"})
			return
		}
		d, err := store.Document(r.Context(), []byte(r.PathValue("doc_id")))
		switch {
		case errors.Is(err, docindex.ErrUnknown):
			answerJSON(w, http.StatusNotFound, failure{Error: err.Error()})
			return
		case err != nil:
			answerJSON(w, statusOf(err), failure{Error: err.Error()})
			return
		}
		out := lookedUp{
			DocID: string(d.DocID), URL: string(d.URL), State: d.State.String(), Priority: d.Priority,
			Crawl: string(d.Crawl), Key: string(d.Key), Metadata: json.RawMessage(d.Metadata),
		}
		if len(d.Metadata) == 0 {
			out.Metadata = json.RawMessage("{}")
		}
		answerJSON(w, http.StatusOK, out)
	})
}
