package otlp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"urlserver/internal/testkit/otlptest"
	"urlserver/internal/trace"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// sample returns a document that was sent twice.
func sample(id string) trace.Trace {
	const second = time.Second
	return trace.Trace{
		DocID: id, Host: "a.test", Group: "10.0.0.1", Outcome: "done", Status: 200, Attempts: 2,
		Spans: []trace.Span{
			{Phase: trace.Index, From: 1 * second, To: 2 * second},
			{Phase: trace.DNS, From: 2 * second, To: 3 * second},
			{Phase: trace.Leftover, From: 3 * second, To: 4 * second},
			{Phase: trace.Slot, From: 4 * second, To: 5 * second},
			{Phase: trace.Spider, From: 5 * second, To: 6 * second, Spider: "10.9.9.9:1", End: "silent"},
			{Phase: trace.Slot, From: 6 * second, To: 7 * second},
			{Phase: trace.Spider, From: 7 * second, To: 8 * second, Spider: "10.9.9.9:2", End: "done"},
			{Phase: trace.Delivery, From: 8 * second, To: 9 * second},
		},
	}
}

// running is an Exporter that runs, and its log. It ends with the test, or when end is called.
type running struct {
	*Exporter
	log *logged
	end func()
}

// logged is a log. Safe for concurrent use.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func start(t *testing.T, url string) running {
	t.Helper()
	log := &logged{}
	e := New(Config{Endpoint: url, Version: "v1", Log: zerolog.New(log)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	end := func() {
		cancel()
		<-ended
	}
	t.Cleanup(end)
	return running{e, log, end}
}

// counts checks the values of the metric.
func (r running) counts(t *testing.T, sent, dropped, failed string) {
	t.Helper()
	want := `# HELP urlserver_traces_total Traces of sampled documents: sent, dropped because too many were under way or waited, or failed to be delivered.
# TYPE urlserver_traces_total counter
urlserver_traces_total{result="dropped"} ` + dropped + `
urlserver_traces_total{result="failed"} ` + failed + `
urlserver_traces_total{result="sent"} ` + sent + "\n"
	if err := testutil.CollectAndCompare(r.Exporter, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestTrace(t *testing.T) {
	receiver := otlptest.New(t)
	e := start(t, receiver.URL+"/")
	j := sample("7")
	e.Take(began, j)
	spans := receiver.Wait(t, 1)[0]
	root := spans[0]
	if root.Name != "document" || root.StartTimeUnixNano != uint64(began.Add(time.Second).UnixNano()) ||
		root.EndTimeUnixNano != uint64(began.Add(9*time.Second).UnixNano()) {
		t.Errorf("the document's span is %v", root)
	}
	for key, want := range map[string]any{
		"urlserver.doc_id": "7", "server.address": "a.test", "urlserver.group": "10.0.0.1",
		"urlserver.outcome":  "done",
		"urlserver.attempts": int64(2), "http.response.status_code": int64(200),
		"urlserver.steps_left_out": nil,
	} {
		if got := otlptest.Attribute(root, key); got != want {
			t.Errorf("%s is %v; want %v", key, got, want)
		}
	}
	if len(spans) != 1+len(j.Spans) {
		t.Fatalf("%d spans; want one and %d steps", len(spans), len(j.Spans))
	}
	ids := map[string]bool{string(root.SpanId): true}
	for i, s := range spans[1:] {
		step := j.Spans[i]
		if s.Name != step.Phase.String() ||
			s.StartTimeUnixNano != uint64(began.Add(step.From).UnixNano()) ||
			s.EndTimeUnixNano != uint64(began.Add(step.To).UnixNano()) {
			t.Errorf("span %d is %v; want %+v", i, s, step)
		}
		if string(s.ParentSpanId) != string(root.SpanId) || string(s.TraceId) != string(root.TraceId) ||
			len(s.TraceId) != 16 || len(s.SpanId) != 8 || ids[string(s.SpanId)] {
			t.Errorf("span %d: IDs %x %x below %x", i, s.TraceId, s.SpanId, s.ParentSpanId)
		}
		ids[string(s.SpanId)] = true
	}
	if last := spans[7]; otlptest.Attribute(last, "urlserver.attempt") != int64(2) ||
		otlptest.Attribute(last, "urlserver.end") != "done" ||
		otlptest.Attribute(last, "urlserver.spider") != "10.9.9.9:2" ||
		otlptest.Attribute(last, "urlserver.doc_id") != "7" {
		t.Errorf("the second try is %v", last)
	}
	about := receiver.Requests()[0].ResourceSpans[0].Resource.Attributes
	if about[0].Value.GetStringValue() != "urlserver" || about[1].Value.GetStringValue() != "v1" {
		t.Errorf("they come from %v", about)
	}
	e.end()
	e.counts(t, "1", "0", "0")
}

// Traces beyond the queue's length are dropped and counted. Nothing waits.
func TestQueueIsBounded(t *testing.T) {
	e := New(Config{Endpoint: "http://127.0.0.1:9", Log: zerolog.Nop()})
	for range maxQueue + 10 {
		e.Take(began, sample("1"))
	}
	e.Drop(5)
	running{Exporter: e}.counts(t, "0", "15", "0")
}

// direct calls a handler without a network.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// Queued traces are sent although the Exporter ends at once. In the bubble no machine is too slow
// for lastWait.
func TestWhatIsLeftGoesOut(t *testing.T) {
	receiver := otlptest.New(t)
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Endpoint: receiver.URL, Log: zerolog.Nop()})
		e.client.Transport = direct{receiver}
		for range 10 {
			e.Take(began, sample("1"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e.Run(ctx)
	})
	if n := len(receiver.Traces()); n != 10 {
		t.Errorf("%d traces have come; want 10", n)
	}
}

func TestNil(t *testing.T) {
	var e *Exporter
	e.Take(began, sample("1"))
	e.Drop(1)
}

func answers(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }
}

// A temporary failure is tried again. After a permanent one the batch is lost and logged once, and
// the next batch is sent.
func TestFailures(t *testing.T) {
	receiver := otlptest.New(t)
	e := start(t, receiver.URL)
	receiver.Answer(answers(http.StatusServiceUnavailable, "not now"))
	e.Take(began, sample("again"))
	if got := otlptest.Attribute(receiver.Wait(t, 1)[0][0], "urlserver.doc_id"); got != "again" {
		t.Errorf("%v came", got)
	}
	for range 2 {
		refused := make(chan struct{})
		receiver.Answer(func(w http.ResponseWriter, r *http.Request) {
			answers(http.StatusBadRequest, "odd\n")(w, r)
			close(refused)
		})
		e.Take(began, sample("lost"))
		<-refused
	}
	receiver.Answer(answers(http.StatusTemporaryRedirect, ""))
	e.Take(began, sample("led astray"))
	e.Take(began, sample("next"))
	e.end()
	text := e.log.String()
	if n := strings.Count(text, "400 Bad Request"); n != 1 || !strings.Contains(text, `odd`) {
		t.Errorf("the log has the refusal %d times; want once, with its words:\n%s", n, text)
	}
	if n := e.lost(); n < 3 {
		t.Errorf("%d are lost; want the two refused, and the one that was led elsewhere", n)
	}
}

func (r running) lost() uint64 { return r.Exporter.counts.failed.Load() }

// A receiver that never answers delays neither callers of Take nor the end of the daemon.
func TestReceiverHangs(t *testing.T) {
	receiver := otlptest.New(t)
	asked, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	receiver.Answer(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-end
	})
	e := start(t, receiver.URL)
	e.Take(began, sample("1"))
	<-asked
	for range 2 * maxQueue {
		e.Take(began, sample("2"))
	}
	e.end() // within lastWait, or the test times out
	if e.Exporter.counts.dropped.Load() != maxQueue || e.Exporter.counts.sent.Load() != 0 {
		t.Errorf("%d dropped; want %d", e.Exporter.counts.dropped.Load(), maxQueue)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		status int
		header string
		want   time.Duration
	}{
		{http.StatusBadRequest, "5", 0}, {http.StatusInternalServerError, "", 0},
		{http.StatusMovedPermanently, "", 0},
		{http.StatusTooManyRequests, "5", 5 * time.Second}, {http.StatusServiceUnavailable, "", retryWait},
		{http.StatusServiceUnavailable, "soon", retryWait}, {http.StatusBadGateway, "0", retryWait},
		{http.StatusGatewayTimeout, "9999", maxRetry}, {http.StatusGatewayTimeout, "99999999", retryWait},
	} {
		resp := &http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {c.header}}}
		if got := retryAfter(resp); got != c.want {
			t.Errorf("%d, Retry-After %q: %v; want %v", c.status, c.header, got, c.want)
		}
	}
}
