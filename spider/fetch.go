package spider

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"urlserver/internal/weburl"
)

const (
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10

	// keepAlive is how long a connection may be idle. Common servers close it after 5 s. A request
	// sent just then would be lost, and there is no second try. 4 s are enough for gaps of up to 4
	// s.
	keepAlive = 4 * time.Second

	// maxIdle bounds the idle connections to all hosts, and so the file descriptors.
	maxIdle = 1024

	maxIdlePerHost = 16
)

// fetcher makes the HTTP requests. Safe for concurrent use.
type fetcher struct {
	userAgent string
	timeout   time.Duration
	verify    bool
	transport *http.Transport
	big       chan struct{} // semaphore of readBody
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
}

func newFetcher(userAgent string, timeout time.Duration, verify bool) *fetcher {
	f := &fetcher{
		userAgent: userAgent,
		timeout:   timeout,
		verify:    verify,
		big:       make(chan struct{}, maxBig),
		dial:      (&net.Dialer{}).DialContext,
	}
	f.transport = &http.Transport{ // no Proxy: the daemon decides about the address
		DialContext:            f.dialPlain,
		DialTLSContext:         f.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the archive keeps the body as sent; decode decodes it for the links
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        keepAlive,
		MaxResponseHeaderBytes: maxHeader,
	}
	return f
}

// answer is a host's answer to one request. The caller calls free when it no longer needs it.
type answer struct {
	url           weburl.URL
	addr          netip.Addr
	at            time.Time // when it was requested
	requestHeader http.Header
	proto         string // "HTTP/1.1", "HTTP/2.0"
	status        int
	reason        string // the text after the status
	header        http.Header
	body          []byte // as sent, without transfer coding, with content coding
	cut           cut    // why body is incomplete
	release       func()
}

func (a answer) free() {
	if a.release != nil {
		a.release()
	}
}

// get makes exactly one request for u, to addr, and follows no redirect. An error means that there
// was no answer.
func (f *fetcher) get(ctx context.Context, u weburl.URL, addr netip.Addr) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	req := f.request(ctx, u, addr)
	a := answer{url: u, addr: addr, at: time.Now(), requestHeader: req.Header}
	resp, err := f.transport.RoundTrip(req)
	if err != nil {
		return a, fmt.Errorf("fetch %s from %v: %w", u.Text(), addr, err)
	}
	defer resp.Body.Close()
	a.proto, a.status, a.header = resp.Proto, resp.StatusCode, resp.Header
	a.reason = strings.TrimSpace(strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode)))
	if a.status != http.StatusSwitchingProtocols { // what follows 101 is not a body
		a.body, a.cut, a.release = f.readBody(ctx, resp.Body)
	}
	return a, nil
}

// request returns the request for u from addr. The host of its URL is name and address together, so
// that the transport reuses a connection only for the same name and address. The Host header has
// the name alone.
func (f *fetcher) request(ctx context.Context, u weburl.URL, addr netip.Addr) *http.Request {
	req := &http.Request{
		Method: http.MethodGet,
		Host:   strings.TrimPrefix(string(u.Origin()), string(u.Scheme())+"://"),
		Header: http.Header{
			"User-Agent":      {f.userAgent},
			"Accept":          {"text/html,application/xhtml+xml,*/*;q=0.8"},
			"Accept-Encoding": {"gzip"},
		},
		Body: once{},
		// Without it the transport tries to read a byte of the body. If none arrives within 200 ms,
		// as on a busy machine, it announces chunks: a GET with a body, which hosts refuse.
		TransferEncoding: []string{"identity"},
		URL:              requestTarget(string(u.Target())),
	}
	req.URL.Scheme = string(u.Scheme())
	req.URL.Host = net.JoinHostPort(string(u.Host())+"|"+addr.String(), strconv.Itoa(int(u.Port())))
	return req.WithContext(ctx)
}

// requestTarget returns a URL whose request target is exactly target. A parsed path would be
// encoded again.
func requestTarget(target string) *url.URL {
	if !strings.HasPrefix(target, "//") {
		return &url.URL{Opaque: target}
	}
	// net/url takes two slashes at the front of Opaque for a host, so such a target is stored as a
	// path. Path keeps all characters except some that browsers send and RFC 3986 forbids, such as
	// "|".
	path, query, hasQuery := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(path)
	if err != nil { // a stray "%": its encoded form is the closest
		decoded = path
	}
	return &url.URL{Path: decoded, RawPath: path, RawQuery: query, ForceQuery: hasQuery}
}

// once is an empty body. The transport sends a request only once if it cannot rewind the body.
// Without a body it would repeat a request at once when a kept connection breaks, and the daemon
// does not know of that request.
type once struct{}

func (once) Read([]byte) (int, error) { return 0, io.EOF }
func (once) Close() error             { return nil }

// WriteTo saves the transport a buffer.
func (once) WriteTo(io.Writer) (int64, error) { return 0, nil }

// dialPlain connects to a host as named by request, "name|address:port".
func (f *fetcher) dialPlain(ctx context.Context, network, host string) (net.Conn, error) {
	conn, _, err := f.connect(ctx, network, host)
	return conn, err
}

// dialTLS is dialPlain with TLS. The name is the SNI.
func (f *fetcher) dialTLS(ctx context.Context, network, host string) (net.Conn, error) {
	conn, name, err := f.connect(ctx, network, host)
	if err != nil {
		return nil, err
	}
	secure, err := handshake(ctx, conn, &tls.Config{
		ServerName:         name,
		InsecureSkipVerify: !f.verify,
		NextProtos:         []string{"h2", "http/1.1"},
	})
	if err != nil {
		return nil, fmt.Errorf("TLS with %s: %w", name, err)
	}
	return secure, nil
}

func (f *fetcher) connect(ctx context.Context, network, host string) (conn net.Conn, name string, err error) {
	pair, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, "", err
	}
	name, addr, _ := strings.Cut(pair, "|")
	conn, err = f.dial(ctx, network, net.JoinHostPort(addr, port))
	return conn, name, err
}

// requestHead returns the request's head as sent over HTTP/1.1, for the archive.
func (a answer) requestHead() []byte {
	var b bytes.Buffer
	host := strings.TrimPrefix(string(a.url.Origin()), string(a.url.Scheme())+"://")
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\n", a.url.Target(), host)
	a.requestHeader.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// responseHead returns the answer's head in the form of HTTP/1.1, with names and order as net/http
// has them.
func (a answer) responseHead() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, a.reason)
	a.header.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}
