package spider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"urlserver/protocol"
)

var errLost = errors.New("the connection to the URL server has ended, which ends its requests")

// fetch makes a request whose turn it is. The turn ends with the response's body.
func (t *Transport) fetch(req *http.Request, mine turn) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	unhook := context.AfterFunc(mine.ctx, func() { cancel(errLost) })
	end := sync.OnceFunc(func() { unhook(); cancel(nil) })
	report := func(r result) {
		select {
		case mine.ended <- r:
		default: // it has ended before
		}
		end()
	}
	out := req.Clone(t.spider.spacing.during(ctx, mine.fetch.Addr, mine.arrived, mine.watch))
	out.GetBody = nil // the transport must not send it twice
	if out.Body == nil || out.Body == http.NoBody {
		out.Body, out.TransferEncoding = once{}, []string{"identity"}
	}
	if out.Host == "" {
		out.Host = req.URL.Host
	}
	out.URL.Host = net.JoinHostPort(req.URL.Hostname()+"|"+mine.fetch.Addr.String(), portOf(req))
	resp, err := t.spider.fetcher.transport.RoundTrip(out)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		report(result{retryAfter: protocol.NoRetryAfter})
		return nil, fmt.Errorf("fetch %s from %v: %w", req.URL.Redacted(), mine.fetch.Addr, err)
	}
	resp.Request = req
	whole := result{status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"), mine.arrived)}
	if resp.Body == http.NoBody {
		report(whole)
	} else {
		resp.Body = &turnBody{ReadCloser: resp.Body, whole: whole, report: report}
	}
	return resp, nil
}

// portOf returns the port that a request goes to.
func portOf(req *http.Request) string {
	if port := req.URL.Port(); port != "" {
		return port
	}
	if req.URL.Scheme == "https" {
		return "443"
	}
	return "80"
}

// turnBody is a response's body. It reports the end of the request.
type turnBody struct {
	io.ReadCloser
	whole  result
	report func(result)
}

// Read reports a success whose body breaks off as no answer, as the reference spider does.
func (b *turnBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) || b.whole.status/100 != 2:
		b.report(b.whole)
	default:
		b.report(result{retryAfter: protocol.NoRetryAfter})
	}
	return n, err
}

// Close reports the answer as it is: the caller wants no more of it.
func (b *turnBody) Close() error {
	err := b.ReadCloser.Close()
	b.report(b.whole)
	return err
}
