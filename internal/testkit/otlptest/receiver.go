// Package otlptest receives traces by OTLP over HTTP, for tests.
package otlptest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// patience is how long traces may take to come, on a machine that is busy.
const patience = 5 * time.Minute

// Receiver is an HTTP server that takes traces. Its methods may be called from any goroutine.
type Receiver struct {
	URL string // the base

	mu       sync.Mutex // guards all below
	requests []*otlp.TracesData
	answers  []http.HandlerFunc // to the next requests, in the place of taking them
	came     chan struct{}      // closed, and made anew, with each request
}

// New starts a Receiver, which lives until the test ends.
func New(t testing.TB) *Receiver {
	r := &Receiver{came: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Answer has the next request answered so, and not taken. Several wait for their turn.
func (r *Receiver) Answer(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, h)
}

// ServeHTTP takes one request.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if h := r.next(); h != nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
		h(w, req)
		return
	}
	var data otlp.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	if err != nil || req.Method != http.MethodPost || req.URL.Path != "/v1/traces" ||
		req.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty ExportTraceServiceResponse: all is taken
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, &data)
	close(r.came)
	r.came = make(chan struct{})
}

func (r *Receiver) next() (h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) > 0 {
		h, r.answers = r.answers[0], r.answers[1:]
	}
	return h
}

// Traces are those that have come, in their order, each the document's span and behind it its
// steps'.
func (r *Receiver) Traces() (traces [][]*otlp.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, data := range r.requests {
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			if len(s.ParentSpanId) == 0 {
				traces = append(traces, nil)
			}
			traces[len(traces)-1] = append(traces[len(traces)-1], s)
		}
	}
	return traces
}

// Requests are those that were taken.
func (r *Receiver) Requests() []*otlp.TracesData {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*otlp.TracesData(nil), r.requests...)
}

// Wait waits for so many traces.
func (r *Receiver) Wait(t testing.TB, n int) [][]*otlp.Span {
	t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		came := r.came
		r.mu.Unlock()
		traces := r.Traces()
		if len(traces) >= n {
			return traces
		}
		select {
		case <-came:
		case <-late:
			t.Fatalf("%d traces have come; want %d", len(traces), n)
		}
	}
}

// Attribute is a span's attribute: a string, an int64, or nil where there is none.
func Attribute(s *otlp.Span, key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			if n, ok := a.Value.Value.(*common.AnyValue_IntValue); ok {
				return n.IntValue
			}
			return a.Value.GetStringValue()
		}
	}
	return nil
}
