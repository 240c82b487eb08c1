package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"urlserver/internal/clihelp"
)

const (
	defaultAt   = "http://127.0.0.1:8080"
	atEnv       = "URLSERVER_AT"
	tokenEnv    = "URLSERVER_TOKEN"
	callTimeout = time.Minute
	maxAnswer   = 16 << 20 // bytes of an answer of a daemon
)

var errInterrupted = errors.New("interrupted")

// client calls a running daemon.
type client struct {
	cmd    *cobra.Command // the command with the flags
	at     string
	token  string
	asJSON bool
	base   *url.URL
	http   http.Client
}

// flags adds the flags for the daemon's address and token.
func (c *client) flags(cmd *cobra.Command) {
	c.cmd = cmd
	cmd.Flags().StringVar(&c.at, "at", defaultAt,
		"HTTP `address` of the daemon, host:port or a URL; or set "+atEnv)
	cmd.Flags().StringVar(&c.token, "token", "", "http.token of the daemon; or set "+tokenEnv)
}

// lookFlags adds the flags of a command that prints an answer of the daemon.
func (c *client) lookFlags(cmd *cobra.Command) {
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print the daemon's answer as it is")
}

// open checks the flags. The client follows no redirect, because it would send the token elsewhere.
func (c *client) open() error {
	at := c.at
	if env := os.Getenv(atEnv); env != "" && !c.cmd.Flags().Changed("at") {
		at = env
	}
	if !strings.Contains(at, "://") {
		at = "http://" + at
	}
	base, err := url.Parse(at)
	if err != nil {
		return clihelp.Usagef("--at: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" ||
		base.Fragment != "" {
		return clihelp.Usagef("--at %q: an address as in %s or 127.0.0.1:8080 is wanted", at, defaultAt)
	}
	if c.token == "" {
		c.token = os.Getenv(tokenEnv)
	}
	c.base = base
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return nil
}

// call makes one request and decodes the answer into v. raw is the answer as received.
func (c *client) call(ctx context.Context, method, path, contentType string, body io.Reader,
	v any) (raw []byte, err error) {
	return c.callURL(ctx, method, c.base.JoinPath(path), contentType, body, v)
}

// look gets an answer of the daemon, decodes it into v, and prints it: as received with --json, or by
// print.
func (c *client) look(cmd *cobra.Command, path string, query url.Values, v any, print func(io.Writer) error) error {
	raw, err := c.callQuery(cmd.Context(), http.MethodGet, path, query, v)
	if err != nil {
		return err
	}
	if c.asJSON {
		_, err = cmd.OutOrStdout().Write(raw)
		return err
	}
	return print(cmd.OutOrStdout())
}

// callQuery makes one request with a query and without a body.
func (c *client) callQuery(ctx context.Context, method, path string, query url.Values,
	v any) (raw []byte, err error) {
	to := c.base.JoinPath(path)
	to.RawQuery = query.Encode()
	return c.callURL(ctx, method, to, "", nil, v)
}

// crawlURL returns the URL of a crawl in the daemon's API. Nothing in the ID is taken for a part of the
// path: "../c1", ".." and "50%" are IDs, too.
func (c *client) crawlURL(id string) *url.URL {
	name := url.PathEscape(id)
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return c.base.JoinPath("api", "crawls", name)
}

func (c *client) callURL(ctx context.Context, method string, to *url.URL, contentType string,
	body io.Reader, v any) (raw []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.streamURL(ctx, method, to, contentType, body)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	raw, err = io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", to, err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("%s: this is not the answer of a URL server: %w; is --at right?", to, err)
	}
	return raw, nil
}

// stream makes one request and returns the body of a successful answer. ctx limits the request and
// the reading of the body.
func (c *client) stream(ctx context.Context, method, path, contentType string,
	body io.Reader) (io.ReadCloser, error) {
	return c.streamURL(ctx, method, c.base.JoinPath(path), contentType, body)
}

func (c *client) streamURL(ctx context.Context, method string, target *url.URL, contentType string,
	body io.Reader) (io.ReadCloser, error) {
	to := target.String()
	req, err := c.request(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, errInterrupted
	}
	if err != nil {
		return nil, fmt.Errorf("%w; is the daemon running, and --at right?", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s answers %s: read the rest: %w", to, resp.Status, err)
	}
	return nil, refused(to, resp.Status, resp.StatusCode, raw)
}

// request returns a request with the token.
func (c *client) request(ctx context.Context, method, to string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err == nil && c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, err
}

// refused returns the error for an answer that is not a success.
func refused(to, status string, code int, raw []byte) error {
	var failure struct{ Error string }
	text := fmt.Sprintf("%.200q", strings.TrimSpace(string(raw)))
	if json.Unmarshal(raw, &failure) == nil && failure.Error != "" {
		text = failure.Error
	}
	if code == http.StatusUnauthorized {
		text += "; give it with --token or " + tokenEnv
	}
	return &refusedError{to, status, code, text}
}

// refusedError is a daemon's answer that is not a success.
type refusedError struct {
	to, status string
	code       int
	text       string
}

func (r *refusedError) Error() string {
	return fmt.Sprintf("%s answers %s: %s", r.to, r.status, r.text)
}
