package robots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"syscall"
	"time"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	UserAgent string        // sent as it is
	Timeout   time.Duration // for one request, from dialing to the body's end; 0 means 10 seconds
	// bytes of a body that are read, after decompression; 0 means 500 KiB, the least that RFC 9309
	// allows
	MaxSize int
}

// Client fetches robots.txt. It is safe for concurrent use, keeps no connections and no cookies,
// and uses no proxy. All bodies longer than 16 KiB together use about 32 MiB of memory. At most
// half of the processors parse such bodies at a time, and at most half of them those of 4 to 16
// KiB.
type Client struct {
	userAgent string
	timeout   time.Duration
	maxSize   int
	transport *http.Transport
	long      chan struct{} // semaphore of long bodies
	parsing   [2]chan struct{}
}

const (
	smallBody = 4 << 10  // parsing takes no time
	shortBody = 16 << 10 // any number may be read at a time
	longTotal = 32 << 20 // memory of all long bodies, about
	longWaits = 3        // how many timeouts a long body waits for its turn
)

// NewClient returns a client. It need not be closed.
func NewClient(cfg ClientConfig) *Client {
	c := &Client{
		userAgent: cfg.UserAgent,
		timeout:   cmp.Or(cfg.Timeout, 10*time.Second),
		maxSize:   cmp.Or(cfg.MaxSize, 500<<10),
	}
	c.transport = &http.Transport{
		DialContext:            c.dial,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
	}
	c.long = make(chan struct{}, max(4, longTotal/c.maxSize))
	for i := range c.parsing {
		c.parsing[i] = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	}
	return c
}

const (
	maxHeader = 64 << 10
	maxTLS    = 256 << 10 // size of a handshake with long certificate chains
)

var errTooLong = errors.New("the server sends more than a robots.txt can need")

// Get makes one request for url. It connects to addr, whatever the host resolves to, and follows no
// redirect. Host header and TLS server name are the URL's. After any failure, also of the
// certificate's verification or in the middle of the answer, the response has Status 0 and Err.
func (c *Client) Get(ctx context.Context, url string, addr netip.Addr) Response {
	resp, free := c.fetch(ctx, url, addr)
	free()
	return resp
}

// Read is Get followed by p.Read. The request's timeout does not include the time of p.Read.
func (c *Client) Read(ctx context.Context, url string, addr netip.Addr, p Policy, targets [][]byte) Response {
	resp, free := c.fetch(ctx, url, addr)
	defer free()
	if len(resp.Body) <= smallBody {
		return p.Read(resp, targets...)
	}
	parsing := c.parsing[0]
	if len(resp.Body) > shortBody {
		parsing = c.parsing[1]
	}
	parsing <- struct{}{}
	defer func() { <-parsing }()
	return p.Read(resp, targets...)
}

// request is a request in progress.
type request struct {
	ctx      context.Context
	timer    *time.Timer // ends ctx
	deadline time.Time
	free     func() // releases long, if the request holds it
}

// fetch makes a request. The caller calls free when it no longer uses the body.
func (c *Client) fetch(ctx context.Context, url string, addr netip.Addr) (resp Response, free func()) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, addrKey{}, addr))
	defer cancel(nil)
	r := &request{
		ctx: ctx, timer: time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) }),
		deadline: time.Now().Add(c.timeout), free: func() {},
	}
	defer r.timer.Stop()
	resp, err := c.get(r, url)
	switch {
	case err == nil:
		return resp, r.free
	case context.Cause(ctx) != nil && !errors.Is(err, ErrBusy):
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return Response{Err: fmt.Errorf("fetch %s from %s: %w", url, addr, noFault(err))}, r.free
}

// noFault wraps an error in [ErrBusy] if this machine lacks a resource.
func noFault(err error) error {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
	}
	return err
}

func (c *Client) get(r *request, url string) (Response, error) {
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, url, nil)
	if err != nil {
		return Response{}, err
	}
	req.URL.User = nil
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept", "text/plain, */*;q=0.5")
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return Response{}, err
	}
	defer resp.Body.Close()
	return c.read(r, url, resp)
}

// read returns the parts of resp that matter. It reads a body only of a 2xx.
func (c *Client) read(of *request, url string, resp *http.Response) (Response, error) {
	r := Response{Status: resp.StatusCode,
		RetryAfter: ParseRetryAfter(resp.Header.Get("Retry-After"), dateOf(resp.Header, time.Now()))}
	if isRedirect(r.Status) {
		r.Location = resolveLocation(url, resp.Header.Get("Location"))
	}
	if classOf(r.Status) != answered {
		return r, nil
	}
	if coding := resp.Header.Get("Content-Encoding"); isCompressed(coding) {
		return Response{}, fmt.Errorf("the body is compressed by %q, which was not asked for", coding)
	}
	body, err := c.readBody(of, resp.Body)
	if err != nil {
		return Response{}, fmt.Errorf("read the body: %w", err)
	}
	r.Body = c.cut(body)
	return r, nil
}

// dateOf returns when an answer was sent by the server's clock, which a date in Retry-After goes by, too: this
// machine's may be wrong. now counts if the server does not say.
func dateOf(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// readBody reads a body. The timeout does not include the time that a long body waits for its turn.
func (c *Client) readBody(r *request, from io.Reader) ([]byte, error) {
	from = io.LimitReader(from, int64(c.maxSize)+1)
	body, err := io.ReadAll(io.LimitReader(from, shortBody))
	if err != nil || len(body) < shortBody {
		return body, err
	}
	if r.timer.Stop() {
		since := time.Now()
		patience := time.NewTimer(longWaits * c.timeout)
		defer patience.Stop()
		select {
		case c.long <- struct{}{}:
			r.free = func() { <-c.long }
		case <-patience.C:
			return nil, ErrBusy
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
		r.timer.Reset(time.Until(r.deadline) + time.Since(since))
	}
	rest := bytes.NewBuffer(body)
	_, err = rest.ReadFrom(from)
	return rest.Bytes(), err
}

// cut drops the bytes beyond maxSize, and the line that is cut: half a line may forbid or allow
// more than the whole one.
func (c *Client) cut(body []byte) []byte {
	if len(body) <= c.maxSize {
		return body
	}
	body = body[:c.maxSize]
	return body[:bytes.LastIndexAny(body, "\r\n")+1]
}

// isCompressed reports whether a body with this coding is not text. The transport has already
// decompressed the gzip that it asked for, and has removed the header.
func isCompressed(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "compress", "x-compress", "deflate", "br", "zstd":
		return true
	}
	return false
}

// addrKey is the context's key of the address to dial.
type addrKey struct{}

// Sending bounds the moment at which a request leaves, and reports it to the caller.
type Sending struct {
	By   time.Time // no request is sent later; zero: there is no limit
	Sent func()    // called before each write to the server, from any goroutine
}

// sendingKey is the context's key of a Sending.
type sendingKey struct{}

// WithSending returns a context for requests under s.
func WithSending(ctx context.Context, s Sending) context.Context {
	return context.WithValue(ctx, sendingKey{}, s)
}

// dial connects to the address in ctx and the port of hostPort.
func (c *Client) dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	addr, _ := ctx.Value(addrKey{}).(netip.Addr)
	if !addr.IsValid() {
		return nil, errors.New("no address to dial")
	}
	_, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fmt.Errorf("find the port: %w", err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(addr.Unmap().String(), port))
	if err != nil {
		return nil, err
	}
	if s, ok := ctx.Value(sendingKey{}).(Sending); ok {
		conn = sendingConn{conn, s}
	}
	return c.limit(conn), nil
}

// sendingConn writes as a Sending says. It reads the clock right before each write, because this
// process may be stopped anywhere.
type sendingConn struct {
	net.Conn
	Sending
}

// ErrLate is the error of a request that was not sent because its time had passed, as that of
// [Sending]. It is not the host's fault.
var ErrLate = errors.New("the request could not be sent in time")

// ErrBusy is the error of a request that this machine had no resources for. It is not the host's
// fault.
var ErrBusy = errors.New("there is no room for the request or its answer")

func (c sendingConn) Write(p []byte) (int, error) {
	if !c.By.IsZero() && time.Now().After(c.By) {
		return 0, ErrLate
	}
	c.Sent()
	return c.Conn.Write(p)
}

// limit bounds the bytes read from conn, and so also padding below the body, such as tiny chunks or
// empty compressed blocks. Twice the body's size leaves room for ordinary framing.
func (c *Client) limit(conn net.Conn) net.Conn {
	return &limitedConn{Conn: conn, left: maxHeader + maxTLS + 2*c.maxSize}
}

// limitedConn returns an error once more bytes were read than allowed. Only one goroutine at a time
// may call Read.
type limitedConn struct {
	net.Conn
	left int
}

func (l *limitedConn) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.Conn.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
