// Package httpserver serves a [docindex.Store] over HTTP, by the contract that docindex/CONTRACT.md
// describes. Package httpclient is its client.
package httpserver

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"urlserver/docindex"
	"urlserver/docindex/internal/ndjson"
	"urlserver/internal/netguard"
	"urlserver/internal/weburl"
)

const (
	// maxHandOut is the most candidates in one answer, whatever was asked for.
	maxHandOut = 10_000

	// maxBody bounds the bodies that are read as a whole, after gzip: a million hosts to reject, or
	// a quarter of a million outcomes.
	maxBody = 64 << 20
)

// Store is what the handler uses of a doc index.
type Store interface {
	docindex.Leaser
	docindex.Putter
	docindex.Counter
	Outcomes(ctx context.Context, o *docindex.Outcomes) error
	Find(ctx context.Context, queue docindex.Scope, url []byte) (docindex.Document, error)
}

// Handler serves the contract of CONTRACT.md over store: candidates, outcomes and urls below
// /docindex/. The server around it authenticates clients and bounds how long a body may take.
func Handler(store Store) http.Handler {
	mux := http.NewServeMux()
	for path, m := range map[string]methods{
		"/docindex/candidates":    {http.MethodPost: serveCandidates},
		"/docindex/outcomes":      {http.MethodPost: serveOutcomes},
		"/docindex/counts":        {http.MethodGet: serveCounts},
		"/docindex/urls":          {http.MethodPost: serveURLs, http.MethodGet: serveFind},
		"/docindex/urls/{doc_id}": {http.MethodGet: serveLookup},
	} {
		mux.Handle(path, m.of(store))
	}
	mux.HandleFunc("/docindex/", func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, http.StatusNotFound,
			failure{Error: "no such path; there are candidates, outcomes, urls, counts and dump"})
	})
	return mux
}

// failure is the body of an error answer.
type failure struct {
	Error string `json:"error"`
}

func failureOf(r *http.Request, err error) failure {
	return failure{Error: netguard.ReasonOf(r.Context(), err).Error()}
}

// badRequest is an error of the client, which gets to read it.
type badRequest struct{ error }

func badf(format string, args ...any) error { return badRequest{fmt.Errorf(format, args...)} }

// methods has what serves one path, by method. body is the request body without gzip.
type methods map[string]func(_ Store, _ http.ResponseWriter, _ *http.Request, body io.Reader) error

// of returns the handler of the path. HEAD is answered as GET; net/http drops the body.
func (m methods) of(store Store) http.Handler {
	var allowed []string
	for method := range m {
		allowed = append(allowed, method)
	}
	if m[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		serve := m[method]
		if serve == nil {
			w.Header().Set("Allow", allow)
			answerJSON(w, http.StatusMethodNotAllowed,
				failure{Error: fmt.Sprintf("%.20s is not possible here; use %s", r.Method, allow)})
			return
		}
		body, err := plainBody(r)
		if err == nil {
			err = serve(store, w, r, body)
		}
		if err != nil {
			answerJSON(w, statusOf(err), failureOf(r, err))
		}
	})
}

// queryOf returns the parameters of a request. One that cannot be read is an error: without it URLs would
// go to the crawl DEFAULT. So is a crawl or key that is no UTF-8, since clients of the URL Frontier could not
// read it. A URL may have any bytes.
func queryOf(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badf("query: %w", err)
	}
	for _, name := range []string{"crawl", "key"} {
		if !utf8.ValidString(query.Get(name)) {
			return nil, badf("query: %s is not UTF-8", name)
		}
	}
	return query, nil
}

func statusOf(err error) int {
	switch _, bad := errors.AsType[badRequest](err); {
	case bad:
		return http.StatusBadRequest
	case errors.Is(err, docindex.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, docindex.ErrUnwanted):
		return http.StatusNotImplemented
	case errors.Is(err, docindex.ErrFull):
		return http.StatusInsufficientStorage
	case errors.Is(err, docindex.ErrUnavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// plainBody returns r's body without gzip.
func plainBody(r *http.Request) (io.Reader, error) {
	switch coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
		in, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, badf("body is not gzip as Content-Encoding says: %w", err)
		}
		return in, nil
	default:
		return nil, badf("Content-Encoding %.40q is not understood; there are gzip and identity", coding)
	}
}

func answerJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone needs no answer
}

// candidatesRequest is the body of a request for candidates.
type candidatesRequest struct {
	Max    int64    `json:"max"`
	Reject []string `json:"reject"`
}

func parseCandidatesRequest(body io.Reader) (req candidatesRequest, err error) {
	text, err := io.ReadAll(ndjson.Limit(body, maxBody))
	if err != nil {
		return req, badf("body: %w", err)
	}
	if err := json.Unmarshal(text, &req); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			err = fmt.Errorf("%s: a JSON %s is of the wrong type", wrong.Field, wrong.Value)
		} else if ok {
			err = fmt.Errorf("a JSON %s", wrong.Value)
		}
		return req, badf(`body is not {"max": 1000, "reject": ["a.example"]}: %w`, err)
	}
	if req.Max < 1 {
		return req, badf("max is %d; it has to be 1 or more", req.Max)
	}
	for i, name := range req.Reject {
		req.Reject[i] = hostName(name)
	}
	return req, nil
}

// hostName returns name as weburl writes hosts. A name that is no host is returned as it is and
// matches none.
func hostName(name string) string {
	u, err := weburl.Parse([]byte("http://" + name + "/"))
	if err != nil {
		return name
	}
	return string(u.Host())
}

// serveCandidates hands out documents with a lease, as the taker may vanish.
func serveCandidates(store Store, w http.ResponseWriter, r *http.Request, body io.Reader) error {
	req, err := parseCandidatesRequest(body)
	if err != nil {
		return err
	}
	var batch docindex.Batch
	n := int(min(req.Max, maxHandOut))
	if err := store.Lease(r.Context(), n, req.Reject, docindex.RemoteLease, &batch); err != nil && batch.Len() == 0 {
		return fmt.Errorf("candidates: %w", err)
	}
	var text []byte
	for i := range batch.Len() {
		c := batch.At(i)
		text = ndjson.AppendCandidate(text, c.DocID, c.URL, c.Priority, c.Spider, c.Payload)
	}
	answerLines(w, r, text)
	return nil
}

// answerLines sends NDJSON, with gzip if the client accepts it and it is worth it.
func answerLines(w http.ResponseWriter, r *http.Request, text []byte) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Vary", "Accept-Encoding")
	if len(text) < 1<<10 || !takesGzip(r.Header) {
		_, _ = w.Write(text) // if the client has gone, its lease ends
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	out, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	_, _ = out.Write(text)
	_ = out.Close()
}

// takesGzip reports whether Accept-Encoding allows gzip (RFC 9110, section 12.5.3).
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.TrimRight(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// maxOutcomeLine bounds a line: DOC_ID and URL with every byte escaped, and the rest.
const maxOutcomeLine = 64 << 10

// serveOutcomes takes all lines or none.
func serveOutcomes(store Store, w http.ResponseWriter, r *http.Request, body io.Reader) error {
	var out docindex.Outcomes
	in := ndjson.NewReader(ndjson.Limit(body, maxBody), maxOutcomeLine)
	for {
		line, err := in.Next()
		if err == io.EOF {
			break
		}
		switch {
		case errors.Is(err, ndjson.ErrTooLong):
			err = fmt.Errorf("longer than %d bytes", maxOutcomeLine)
		case err == nil && len(line) > 0:
			err = addOutcome(&out, line)
		}
		if err != nil {
			return badf("line %d: %w; none was taken", max(in.Number(), 1), err)
		}
	}
	if err := store.Outcomes(r.Context(), &out); err != nil {
		return fmt.Errorf("outcomes: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func addOutcome(out *docindex.Outcomes, line []byte) error {
	o, err := ndjson.ParseOutcome(line)
	if err != nil {
		return err
	}
	kind, ok := docindex.ParseKind(o.Word)
	switch {
	case len(o.DocID) == 0:
		return errors.New("no doc_id")
	case !ok:
		return fmt.Errorf("outcome %.40q: it has to be one of %s", o.Word, kinds())
	}
	out.Add(docindex.Outcome{
		DocID: o.DocID, URL: o.URL, Kind: kind, Status: o.Status, NoStatus: o.NoStatus, Change: changeOf(o),
		Attempts: o.Attempts, At: o.At,
	})
	return nil
}

// kinds lists the words for outcomes.
func kinds() string {
	var words []string
	for k := range docindex.Kinds {
		words = append(words, docindex.Kind(k).String())
	}
	return strings.Join(words, ", ")
}

func changeOf(o ndjson.Outcome) docindex.Change {
	switch {
	case !o.HasChanged:
		return docindex.ChangeUnknown
	case o.Changed:
		return docindex.Modified
	}
	return docindex.Unchanged
}
