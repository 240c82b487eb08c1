// Package otlp sends traces to an OpenTelemetry receiver, by OTLP over HTTP.
//
// A trace has a span for the document, and below it one for each phase. Spans are made from the
// finished [trace.Trace], so nothing here runs before the document has ended.
package otlp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"urlserver/internal/trace"
)

const (
	maxQueue = 4096 // traces that wait to be sent
	maxBatch = 256  // traces in a request
	gather   = time.Second
	timeout  = 10 * time.Second
	lastWait = 3 * time.Second // how long Run sends the rest after ctx has ended
)

// Config is the configuration of an Exporter.
type Config struct {
	Endpoint string // base URL; requests go to /v1/traces below it
	Version  string // of the daemon; an attribute of each span
	Log      zerolog.Logger
}

// Exporter sends traces. Use New, then Run. Take and Drop are safe for concurrent use, never wait,
// and do nothing on a nil *Exporter.
type Exporter struct {
	url     string
	version string
	log     zerolog.Logger
	client  *http.Client
	queue   chan timed
	counts  counts
	failing string // the error of the last request; only Run's goroutine uses it
}

// timed is a trace with the date from which its times count.
type timed struct {
	start time.Time
	trace.Trace
}

type counts struct{ sent, dropped, failed atomic.Uint64 }

// New returns an Exporter. Run sends.
func New(cfg Config) *Exporter {
	return &Exporter{
		url:     strings.TrimSuffix(cfg.Endpoint, "/") + "/v1/traces",
		version: cfg.Version,
		log:     cfg.Log,
		client: &http.Client{
			Transport: &http.Transport{MaxConnsPerHost: 1, IdleConnTimeout: time.Minute,
				ResponseHeaderTimeout: timeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		queue: make(chan timed, maxQueue),
	}
}

// Take queues a trace whose times count from start, or drops it if too many wait.
func (e *Exporter) Take(start time.Time, j trace.Trace) {
	if e == nil {
		return
	}
	select {
	case e.queue <- timed{start, j}:
	default:
		e.counts.dropped.Add(1)
	}
}

// Drop counts traces that were dropped before Take.
func (e *Exporter) Drop(n int) {
	if e != nil && n > 0 {
		e.counts.dropped.Add(uint64(n))
	}
}

// Run sends queued traces until ctx ends, and then the rest, for lastWait at most.
func (e *Exporter) Run(ctx context.Context) {
	defer e.client.CloseIdleConnections()
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() {
		if pause(hard, lastWait) {
			cut()
		}
	})()
	batch := make([]timed, 0, maxBatch)
	for ctx.Err() == nil {
		select {
		case t := <-e.queue:
			e.send(hard, e.fill(ctx, append(batch, t)))
		case <-ctx.Done():
		}
	}
	for last := e.more(batch); len(last) > 0; last = e.more(batch) {
		e.send(hard, last)
	}
}

// fill waits a moment for more traces for the same request.
func (e *Exporter) fill(ctx context.Context, batch []timed) []timed {
	moment := time.NewTimer(gather)
	defer moment.Stop()
	for len(batch) < maxBatch {
		select {
		case t := <-e.queue:
			batch = append(batch, t)
		case <-moment.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// more adds queued traces to the batch without waiting.
func (e *Exporter) more(batch []timed) []timed {
	for len(batch) < maxBatch {
		select {
		case t := <-e.queue:
			batch = append(batch, t)
		default:
			return batch
		}
	}
	return batch
}

// send sends a batch. It tries a few times and then drops the batch.
func (e *Exporter) send(ctx context.Context, batch []timed) {
	body, err := encode(batch, e.version)
	if err != nil {
		e.fail(len(batch), err)
		return
	}
	for try := 1; ; try++ {
		wait, err := e.post(ctx, body)
		if err == nil {
			e.counts.sent.Add(uint64(len(batch)))
			e.well()
			return
		}
		if wait == 0 || try == maxTries || !pause(ctx, wait*time.Duration(try)) {
			e.fail(len(batch), err)
			return
		}
	}
}

// fail counts lost traces. It logs the error unless the last one was the same.
func (e *Exporter) fail(n int, err error) {
	e.counts.failed.Add(uint64(n))
	if text := err.Error(); text != e.failing {
		e.failing = text
		e.log.Warn().Err(err).Int("traces",
			n).Msg("traces could not be delivered and are lost; trying on with the next")
	}
}

func (e *Exporter) well() {
	if e.failing != "" {
		e.failing = ""
		e.log.Info().Msg("traces are delivered again")
	}
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusal is the error of an answer without success.
type refusal struct {
	url    string
	status string
	text   string
}

func (r refusal) Error() string { return fmt.Sprintf("%s answers %s: %s", r.url, r.status, r.text) }
