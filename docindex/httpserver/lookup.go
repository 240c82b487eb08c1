package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"urlserver/docindex"
)

// lookedUp is the answer about a stored document.
type lookedUp struct {
	DocID    string          `json:"doc_id"`
	URL      string          `json:"url"`
	State    string          `json:"state"`
	Due      *time.Time      `json:"due"` // null: it is not scheduled
	Outcome  *string         `json:"outcome"`
	Status   *int            `json:"status"` // null: there is no outcome, or its status is not known
	At       *time.Time      `json:"at"`
	Priority int32           `json:"priority"`
	Crawl    string          `json:"crawl"`
	Key      string          `json:"key"`
	Metadata json.RawMessage `json:"metadata"`
	Unique   string          `json:"unique,omitempty"`
	Depth    uint16          `json:"depth,omitempty"`
	Payload  []byte          `json:"payload,omitempty"`
}

// lastDue is the latest time that RFC 3339 can express.
var lastDue = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func answerOf(d *docindex.Document) lookedUp {
	out := lookedUp{
		DocID: string(d.DocID), URL: string(d.URL), State: d.State.String(), Priority: d.Priority,
		Crawl: cmp.Or(string(d.Crawl), docindex.DefaultCrawl), Key: string(d.Key),
		Metadata: json.RawMessage(d.Metadata),
		Unique:   string(d.Unique), Depth: d.Depth, Payload: d.Payload,
	}
	if len(d.Metadata) == 0 {
		out.Metadata = json.RawMessage("{}")
	}
	if d.State == docindex.Scheduled { // no document is due before it was put
		due := time.Unix(min(max(d.Due, d.Created.Unix()), lastDue.Unix()), 0).UTC()
		out.Due = &due
	}
	if d.Last.Known {
		out.Outcome = new(d.Last.Kind.String())
	}
	if d.Last.Known && !d.Last.NoStatus {
		out.Status = &d.Last.Status
	}
	if !d.Last.At.IsZero() {
		out.At = &d.Last.At
	}
	return out
}

// serveLookup answers with the document of a DOC_ID.
func serveLookup(store Store, w http.ResponseWriter, r *http.Request, _ io.Reader) error {
	d, err := store.Document(r.Context(), []byte(r.PathValue("doc_id")))
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, answerOf(&d))
	return nil
}

// serveFind answers with the document of a URL.
func serveFind(store Store, w http.ResponseWriter, r *http.Request, _ io.Reader) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	put := docindex.Put{URL: []byte(query.Get("url")), Crawl: []byte(query.Get("crawl")), Key: []byte(query.Get("key"))}
	if len(put.URL) == 0 {
		return badf("no url; ask as in /docindex/urls?url=http://a.example/&crawl=CRAWL")
	}
	d, err := find(r.Context(), store, put)
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, answerOf(&d))
	return nil
}

// find returns the document that is known by the crawl, key and URL of put. It looks for the URL in
// the form in which Put stores it, and then as it is, since clients of the URL Frontier may put any
// text.
func find(ctx context.Context, store Store, put docindex.Put) (docindex.Document, error) {
	var forms docindex.Puts
	bad := forms.Add(put)
	if err := forms.AddExact(put, docindex.HostOf(put.URL)); err != nil && bad != nil {
		return docindex.Document{}, badRequest{bad}
	}
	for i := range forms.Len() {
		form, host := forms.At(i)
		key := form.Key
		if len(key) == 0 {
			key = host
		}
		d, err := store.Find(ctx, docindex.Scope{Crawl: form.Crawl, Key: key}, form.URL)
		if !errors.Is(err, docindex.ErrUnknown) {
			return d, err
		}
	}
	text := fmt.Sprintf("url %.200q of crawl %.100q", put.URL, cmp.Or(string(put.Crawl), docindex.DefaultCrawl))
	if len(put.Key) > 0 {
		text += fmt.Sprintf(" with key %.100q", put.Key)
	}
	return docindex.Document{}, fmt.Errorf("%s: %w; put it, or name the crawl and the key that it was put with",
		text, docindex.ErrUnknown)
}
