package otlp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	maxTries  = 3
	retryWait = time.Second      // before the second try; twice that before the third
	maxRetry  = 10 * time.Second // longest wait that a receiver can ask for
	maxAnswer = 64 << 10         // bytes read of an answer
	maxShown  = 200              // bytes of an answer in an error
)

// post sends one request. After an error, wait is the time until another try; 0: do not try again.
func (e *Exporter) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "urlserver")
	resp, err := e.client.Do(req)
	if err != nil {
		return retryWait, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status decides, so an error is ignored
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	return retryAfter(resp), refusal{e.url, resp.Status,
		strconv.QuoteToASCII(string(text[:min(len(text), maxShown)]))}
}

// retryAfter returns the time until another try after an answer; 0: the answer is final (OTLP
// specification, "Failures").
func retryAfter(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
	default:
		return 0
	}
	seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
	if err != nil || seconds == 0 {
		return retryWait
	}
	return min(time.Duration(seconds)*time.Second, maxRetry)
}
