package spider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// maxBatch and maxBatchBytes bound a request to the index, and the links that wait for the next
	// one.
	maxBatch      = 1000
	maxBatchBytes = 1 << 20

	// indexTimeout bounds one request to the index.
	indexTimeout = 30 * time.Second

	maxIndexAnswer = 64 << 10
)

// index puts links to the doc index. One request is open at a time. Links added meanwhile go into
// the next request, so that many small pages share one and none waits for a timer. There is no
// background goroutine: one of the callers that wait sends the links of all.
type index struct {
	url, token string
	client     *http.Client
	log        zerolog.Logger
	count      *counters

	turn    chan struct{} // a semaphore of one; guards sending
	sending batch         // rest of a sender whose ctx ended; the next one sends it

	mu      sync.Mutex // guards all below; held for memory work only
	pending batch
	added   uint64 // number of URLs ever added
	taken   uint64 // number of these, in order, that the index has answered
}

// batch is some URLs, one per line.
type batch struct {
	lines []byte
	n     int
}

func newIndex(base, token string, log zerolog.Logger, count *counters) *index {
	return &index{
		url:   strings.TrimRight(base, "/") + "/docindex/urls",
		token: token,
		client: &http.Client{
			Timeout:   indexTimeout,
			Transport: &http.Transport{IdleConnTimeout: time.Minute},
			// Go may follow a redirected POST with a GET, which succeeds without storing anything.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log:   log,
		count: count,
		turn:  make(chan struct{}, 1),
	}
}

// put returns when the index has taken or refused each of lines, which are links as
// linkSet.objects writes them. It repeats failed requests. Its error is ctx's.
func (x *index) put(ctx context.Context, lines []string) error {
	var ticket uint64
	for i := 0; i < len(lines); {
		var n int
		if n, ticket = x.add(lines[i:]); n == 0 { // there is no room
			if err := x.wait(ctx, ticket); err != nil {
				return err
			}
		}
		i += n
	}
	return x.wait(ctx, ticket)
}

// add adds as many of lines as there is room for. ticket is the value that taken has when the last
// one is answered.
func (x *index) add(lines []string) (n int, ticket uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, line := range lines {
		if x.pending.n == maxBatch || len(x.pending.lines)+len(line)+1 > maxBatchBytes {
			break
		}
		x.pending.lines = append(append(x.pending.lines, line...), '\n')
		x.pending.n++
		n++
	}
	x.added += uint64(n)
	return n, x.added
}

// wait returns when taken has reached ticket. It sends if no other caller does.
func (x *index) wait(ctx context.Context, ticket uint64) error {
	for !x.reached(ticket) {
		select {
		case x.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		var err error
		if !x.reached(ticket) {
			err = x.send(ctx)
		}
		<-x.turn
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *index) reached(ticket uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.taken >= ticket
}

// send sends one batch. Only the caller that holds turn calls it.
func (x *index) send(ctx context.Context) error {
	if x.sending.n == 0 {
		x.mu.Lock()
		x.sending, x.pending = x.pending, batch{lines: x.sending.lines[:0]}
		x.mu.Unlock()
	}
	if err := x.deliver(ctx, x.sending); err != nil {
		return err
	}
	x.mu.Lock()
	x.taken += uint64(x.sending.n)
	x.mu.Unlock()
	x.sending = batch{lines: x.sending.lines[:0]}
	return nil
}

// deliver posts b until the index has taken or refused each of its URLs. If it refuses the request,
// deliver tries the halves, so that one bad URL does not cost the others.
func (x *index) deliver(ctx context.Context, b batch) error {
	for wait := (backoff{}); ; wait.sleep(ctx) {
		err := x.post(ctx, b)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errRefused) && b.n == 1:
			x.count.linksRefused.Add(1)
			x.log.Error().Err(err).Bytes("link",
				bytes.TrimSuffix(b.lines, []byte("\n"))).Msg("link refused by the index")
			return nil
		case errors.Is(err, errRefused):
			first, second := b.halves()
			if err := x.deliver(ctx, first); err != nil {
				return err
			}
			return x.deliver(ctx, second)
		}
		x.log.Warn().Err(err).Msg("links not taken; trying again")
	}
}

// halves splits a batch of two or more URLs.
func (b batch) halves() (first, second batch) {
	end, half := 0, b.n/2
	for range half {
		end += bytes.IndexByte(b.lines[end:], '\n') + 1
	}
	return batch{lines: b.lines[:end:end], n: half}, batch{lines: b.lines[end:], n: b.n - half}
}

// errRefused means that the index cannot process this request, and that repeating it does not help.
var errRefused = errors.New("refused")

// post makes one request with b.
func (x *index) post(ctx context.Context, b batch) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(b.lines))
	if err != nil {
		return fmt.Errorf("put links: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if x.token != "" {
		req.Header.Set("Authorization", "Bearer "+x.token)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return fmt.Errorf("put links: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxIndexAnswer))
	switch status := resp.StatusCode; {
	case status == 400, status == 413, status == 422:
		return fmt.Errorf("put links: %s answers %s: %.200q: %w", x.url, resp.Status, answer, errRefused)
	case status/100 != 2:
		return fmt.Errorf("put links: %s answers %s: %.200q", x.url, resp.Status, answer)
	case err != nil:
		return fmt.Errorf("put links: read the answer: %w", err)
	}
	x.tally(b.n, answer)
	return nil
}

// tally counts the results of n links. If the answer has another form, all count as taken.
func (x *index) tally(n int, answer []byte) {
	var verdict struct{ Invalid int }
	if json.Unmarshal(answer, &verdict) != nil {
		verdict.Invalid = 0
	}
	refused := min(max(verdict.Invalid, 0), n)
	x.count.linksRefused.Add(int64(refused))
	x.count.linksTaken.Add(int64(n - refused))
}
