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

// ClientConfig says how to ask.
type ClientConfig struct {
	UserAgent string        // sent as it is
	Timeout   time.Duration // for one request, from dialing to the body's end; 0 means 10 seconds
	// bytes of a body that count, after decompression; 0 means 500 KiB, the least RFC 9309 allows
	MaxSize int
}

// Client fetches robots.txt. It is safe for concurrent use, keeps no connections and no cookies,
// and uses no proxy. Bodies longer than 16 KiB take some 32 MiB together, however many there are;
// half of the processors parse them at most, and as many those of the others that are longer than 4
// KiB.
type Client struct {
	userAgent string
	timeout   time.Duration
	maxSize   int
	transport *http.Transport
	long      chan struct{} // places for long bodies
	parsing   [2]chan struct{}
}

const (
	smallBody = 4 << 10  // takes no time to parse
	shortBody = 16 << 10 // any number may be read at a time
	longTotal = 32 << 20 // of long bodies, about
	longWaits = 3        // timeouts that one waits for a place
)

// NewClient returns a client. It holds nothing that needs closing.
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
	maxTLS    = 256 << 10 // what a handshake with long certificate chains takes
)

var errTooLong = errors.New("the server sends more than a robots.txt can need")

// Get makes one request for url, to addr whatever its host resolves to, and follows no redirect.
// Host header and TLS server name are the URL's. A certificate that does not verify, an answer
// that breaks off and any other failure is no answer: Status 0 and Err.
func (c *Client) Get(ctx context.Context, url string, addr netip.Addr) Response {
	resp, free := c.fetch(ctx, url, addr)
	free()
	return resp
}

// Read is Get, and reads what came as p.Read does. The time that this takes is not the request's.
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

// request is one that is under way.
type request struct {
	ctx      context.Context
	timer    *time.Timer // ends ctx
	deadline time.Time
	free     func() // gives the place for a long body back, if there is one
}

// fetch makes a request. free is to be called when the body is used no more.
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

// noFault makes an error an [ErrBusy] that says that this machine lacks something.
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

// read takes from resp what counts; only a 2xx has a body that does.
func (c *Client) read(of *request, url string, resp *http.Response) (Response, error) {
	r := Response{Status: resp.StatusCode, RetryAfter: parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())}
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

// readBody reads a body. The time that a long one waits for a place does not count for the timeout.
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

// cut drops what is beyond maxSize, and the line that it falls into: half a line may say more
// than the whole one.
func (c *Client) cut(body []byte) []byte {
	if len(body) <= c.maxSize {
		return body
	}
	body = body[:c.maxSize]
	return body[:bytes.LastIndexAny(body, "\r\n")+1]
}

// isCompressed knows the codings of a body that cannot be read as text. The transport has undone
// and removed gzip before, which it asks for.
func isCompressed(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "compress", "x-compress", "deflate", "br", "zstd":
		return true
	}
	return false
}

// addrKey is the context's key of the address to dial.
type addrKey struct{}

// byKey is the context's key of what By sets.
type byKey struct{}

// By returns a context under which a request is not sent once the given moment has passed.
func By(ctx context.Context, by time.Time) context.Context {
	return context.WithValue(ctx, byKey{}, by)
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
	if by, ok := ctx.Value(byKey{}).(time.Time); ok {
		conn = lateConn{conn, by}
	}
	return c.limit(conn), nil
}

// lateConn takes no byte after a moment. It looks right before it writes, as this process may stand
// still anywhere.
type lateConn struct {
	net.Conn
	by time.Time
}

// ErrLate is why there is no answer to a request that was not sent since the moment of [By] had
// passed. It says nothing of the host.
var ErrLate = errors.New("the request could not be sent in time")

// ErrBusy is why there is no answer that this process had no room for. It says nothing of the host.
var ErrBusy = errors.New("there is no room for the request or its answer")

func (c lateConn) Write(p []byte) (int, error) {
	if time.Now().After(c.by) {
		return 0, ErrLate
	}
	return c.Conn.Write(p)
}

// limit bounds all that comes over conn, so that padding below the body, such as tiny chunks or
// compressed nothing, ends too. Twice the size leaves room for honest framing.
func (c *Client) limit(conn net.Conn) net.Conn {
	return &limitedConn{Conn: conn, left: maxHeader + maxTLS + 2*c.maxSize}
}

// limitedConn fails when more was read than allowed. Like any connection's, its Read is for one
// goroutine at a time.
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
