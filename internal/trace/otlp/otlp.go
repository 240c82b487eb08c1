// Package otlp tells journeys to an OpenTelemetry receiver, by OTLP over HTTP.
//
// A journey is a trace: a span for the document, and below it one for each step. The spans are put
// together from what the journey says, so nothing of this runs while a document is on its way.
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
	maxQueue = 4096 // journeys that wait to be sent
	maxBatch = 256  // journeys in a request
	gather   = time.Second
	timeout  = 10 * time.Second
	lastWait = 3 * time.Second // for what is left when Run is to end
)

// Config is what an Exporter works with.
type Config struct {
	Endpoint string // base URL; /v1/traces below it is asked
	Version  string // of the daemon, for people to read
	Log      zerolog.Logger
}

// Exporter sends journeys. Use New, then Run. Take and Drop may be called from any goroutine, never
// wait, and do nothing on a nil *Exporter.
type Exporter struct {
	url     string
	version string
	log     zerolog.Logger
	client  *http.Client
	queue   chan timed
	figures figures
	failing string // what the last request failed with; Run's goroutine alone touches it
}

// timed is a journey that began to be timed at a date.
type timed struct {
	start time.Time
	trace.Trace
}

type figures struct{ sent, dropped, failed atomic.Uint64 }

// New returns an Exporter. Nothing is sent yet.
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

// Take takes a journey whose times count from start, or drops it where too many wait.
func (e *Exporter) Take(start time.Time, j trace.Trace) {
	if e == nil {
		return
	}
	select {
	case e.queue <- timed{start, j}:
	default:
		e.figures.dropped.Add(1)
	}
}

// Drop counts journeys that were dropped before they could be taken.
func (e *Exporter) Drop(n int) {
	if e != nil && n > 0 {
		e.figures.dropped.Add(uint64(n))
	}
}

// Run sends what is taken until ctx ends, and then what is left, for a few seconds at most.
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

// fill waits a moment for more to send together.
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

// more takes what is there.
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

// send tries until the batch is dealt with. What is not taken within some tries is lost: traces are
// not worth waiting for.
func (e *Exporter) send(ctx context.Context, batch []timed) {
	body, err := encode(batch, e.version)
	if err != nil {
		e.fail(len(batch), err)
		return
	}
	for try := 1; ; try++ {
		wait, err := e.post(ctx, body)
		if err == nil {
			e.figures.sent.Add(uint64(len(batch)))
			e.well()
			return
		}
		if wait == 0 || try == maxTries || !pause(ctx, wait*time.Duration(try)) {
			e.fail(len(batch), err)
			return
		}
	}
}

// fail counts what is lost, and logs why, once while it is the same.
func (e *Exporter) fail(n int, err error) {
	e.figures.failed.Add(uint64(n))
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

// pause waits, and answers false where ctx ends first.
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

// refusal is the error of an answer that is none of success.
type refusal struct {
	url    string
	status string
	text   string
}

func (r refusal) Error() string { return fmt.Sprintf("%s answers %s: %s", r.url, r.status, r.text) }
