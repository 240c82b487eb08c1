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
	retryWait = time.Second      // before the second try, and twice that before the third
	maxRetry  = 10 * time.Second // however long the receiver asks for
	maxAnswer = 64 << 10         // bytes read of an answer
	maxShown  = 200              // of them for people to read
)

// post makes one request. With an error, wait is how long to wait before another try; 0: none would
// help.
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status has said it all
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	return retryAfter(resp), refusal{e.url, resp.Status, strconv.QuoteToASCII(string(text[:min(len(text), maxShown)]))}
}

// retryAfter is how long to wait after an answer; 0: it is final (OTLP specification, "Failures").
func retryAfter(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0
	}
	seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
	if err != nil || seconds == 0 {
		return retryWait
	}
	return min(time.Duration(seconds)*time.Second, maxRetry)
}
