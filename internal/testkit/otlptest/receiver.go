// Package otlptest has an HTTP server that receives traces by OTLP, for tests.
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

// patience is how long a test waits for traces, on a busy machine.
const patience = 5 * time.Minute

// Receiver is an HTTP server that receives traces. Safe for concurrent use.
type Receiver struct {
	URL string // base URL

	mu       sync.Mutex // guards all below
	requests []*otlp.TracesData
	answers  []http.HandlerFunc // answer the next requests instead of the Receiver
	came     chan struct{}      // closed and replaced at each request
}

// New starts a Receiver that runs until the test ends.
func New(t testing.TB) *Receiver {
	r := &Receiver{came: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Answer lets h answer the next request; the Receiver does not store its traces. Several handlers
// answer one request each, in order.
func (r *Receiver) Answer(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, h)
}

// ServeHTTP handles one request.
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
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer: all spans are accepted
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

// Traces returns the traces received, in order. A trace is the span of the document, followed by
// those of its steps.
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

// Requests returns the requests whose traces were stored.
func (r *Receiver) Requests() []*otlp.TracesData {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*otlp.TracesData(nil), r.requests...)
}

// Wait waits until n traces have been received.
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

// Attribute returns an attribute of a span: a string, an int64, or nil if there is none.
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
