// Package httpclient is the client of a doc index over HTTP, by the contract in
// docindex/CONTRACT.md.
package httpclient

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"urlserver/docindex"
)

const (
	connectTimeout = 10 * time.Second
	defaultTimeout = 60 * time.Second
	idleTimeout    = 90 * time.Second
)

// Config says where the index is. New checks it.
type Config struct {
	URL     string        // BASE of the contract: http or https, without query
	Token   string        // sent as a bearer token; "": none
	Timeout time.Duration // of a whole call; 0: a minute. Connecting may take 10 s of it, the first byte half of it
}

// Client is a docindex.Source at the other end of an HTTP connection. It keeps idle connections and
// takes a proxy from the environment, as net/http does. It follows no redirect, since that would
// send the token elsewhere. Safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

var _ docindex.Source = (*Client)(nil)

// New returns a client. It sends nothing yet.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("doc index URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("doc index URL %q: it has to begin with http:// or https:// and a host", cfg.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("doc index URL %q: it cannot have a query or fragment, as /candidates is put behind it",
			base.Redacted())
	}
	timeout := cmp.Or(cfg.Timeout, defaultTimeout)
	return &Client{
		base:  base,
		token: cfg.Token,
		http: &http.Client{
			Transport:     transport(timeout),
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func transport(timeout time.Duration) *http.Transport {
	dialer := net.Dialer{Timeout: min(connectTimeout, timeout)}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    min(connectTimeout, timeout),
		ResponseHeaderTimeout:  timeout / 2,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// Close closes idle connections. Calls in progress go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// post sends body to BASE/path. The caller closes the answer's body, which is without gzip.
func (c *Client) post(ctx context.Context, path, contentType string, body []byte) (*http.Response, error) {
	to := c.base.JoinPath(path).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "urlserver")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(req)
}

// StatusError is an answer with a status that the contract does not have.
type StatusError struct {
	URL    string
	Status int
	Text   string // the beginning of the body, or the target of a redirect
}

// Error says what to do where the status tells.
func (e *StatusError) Error() string {
	hint := ""
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		hint = "; is docindex.token right?"
	case e.Status == http.StatusNotFound:
		hint = "; is docindex.url right?"
	case 300 <= e.Status && e.Status < 400:
		hint = "; redirects are not followed: set docindex.url to where the index is"
	}
	return fmt.Sprintf("%s answers %d %s: %.200q%s", e.URL, e.Status, http.StatusText(e.Status), e.Text, hint)
}

// maxSaid is how much of an error answer is read, and maxShown how much of it is kept.
const maxSaid, maxShown = 4 << 10, 200

// statusError returns an error with resp's text, without the token should the text repeat it.
func statusError(resp *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid)) // what came of it will do
	text := cmp.Or(leadsTo(resp), string(bytes.TrimSpace(said)))
	if _, token, ok := strings.Cut(resp.Request.Header.Get("Authorization"), " "); ok {
		text = strings.ReplaceAll(text, token, "***")
	}
	return &StatusError{URL: resp.Request.URL.Redacted(), Status: resp.StatusCode,
		Text: text[:min(len(text), maxShown)]}
}

// leadsTo returns the target of a redirect without user and query, which may hold secrets; "": it
// is no redirect.
func leadsTo(resp *http.Response) string {
	to, err := resp.Location()
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
}

// drain reads a short rest, so that the connection can be used again, and closes the body.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // only worth a try
	resp.Body.Close()
}
