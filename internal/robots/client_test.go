package robots

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// at returns the URL of name on the port where server listens.
func at(t *testing.T, server *httptest.Server, name, target string) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + name + ":" + u.Port() + target
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestGetAnswers(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			io.WriteString(w, "User-agent: *\n")
		case "/moved":
			w.Header().Set("Location", "//b.test/x")
			w.WriteHeader(308)
		case "/lost":
			w.WriteHeader(302)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(503)
			io.WriteString(w, "a body that does not count")
		case "/dated": // by a clock that is years behind this one
			w.Header().Set("Date", "Mon, 01 Jan 2001 10:00:00 GMT")
			w.Header().Set("Retry-After", "Mon, 01 Jan 2001 10:01:30 GMT")
			w.WriteHeader(503)
		case "/choices":
			w.Header().Set("Location", "/x")
			w.WriteHeader(300)
		case "/brotli":
			w.Header().Set("Content-Encoding", "br")
		case "/charset":
			w.Header().Set("Content-Encoding", "utf-8")
			io.WriteString(w, "x")
		default:
			w.WriteHeader(404)
		}
	})
	c := NewClient(ClientConfig{UserAgent: "foobot/1.0"})
	for _, tc := range []struct {
		name   string
		target string
		want   Response
		fails  bool
	}{
		{name: "file", target: "/robots.txt", want: Response{Status: 200, Body: []byte("User-agent: *\n")}},
		{name: "none", target: "/x", want: Response{Status: 404}},
		{name: "redirect", target: "/moved", want: Response{Status: 308, Location: "http://b.test/x"}},
		{name: "redirect to nowhere", target: "/lost", want: Response{Status: 302}},
		{name: "not a redirect", target: "/choices", want: Response{Status: 300}},
		{name: "retry later", target: "/busy", want: Response{Status: 503, RetryAfter: 2 * time.Minute}},
		{name: "retry at a date", target: "/dated", want: Response{Status: 503, RetryAfter: 90 * time.Second}},
		{name: "unreadable coding", target: "/brotli", fails: true},
		{name: "mistaken coding", target: "/charset", want: Response{Status: 200, Body: []byte("x")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := c.Get(t.Context(), at(t, server, "a.test", tc.target), loopback)
			if got.Status != tc.want.Status || got.Location != tc.want.Location ||
				got.RetryAfter != tc.want.RetryAfter ||
				!bytes.Equal(got.Body, tc.want.Body) || (got.Err != nil) != tc.fails {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestGetAsksProperly(t *testing.T) {
	requests := make(chan *http.Request, 10)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c := NewClient(ClientConfig{UserAgent: "foobot/1.0 (+http://foobot.test/)"})
	for range 2 {
		url := strings.Replace(at(t, server, "a.test", "/robots.txt"), "://", "://user:pass@", 1)
		if resp := c.Get(t.Context(), url, netip.MustParseAddr("::ffff:127.0.0.1")); resp.Err != nil {
			t.Fatal(resp.Err)
		}
	}
	if len(requests) != 2 {
		t.Errorf("%d requests for two calls: a redirect was followed", len(requests))
	}
	<-requests
	got := <-requests // the one that could have had a cookie
	if host, _, _ := net.SplitHostPort(got.Host); host != "a.test" || got.URL.Path != "/robots.txt" ||
		got.Method != "GET" {
		t.Errorf("asked for %s %s%s", got.Method, got.Host, got.URL)
	}
	if agent := got.Header.Get("User-Agent"); agent != "foobot/1.0 (+http://foobot.test/)" {
		t.Errorf("asked as %q", agent)
	}
	if got.Header.Get("Cookie") != "" || got.Header.Get("Authorization") != "" {
		t.Errorf("sent a cookie or credentials: %v", got.Header)
	}
	if !got.Close {
		t.Error("asked to keep the connection")
	}
}

func TestGetCutsTheBody(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
		want string
	}{
		{name: "fits", body: "0123456789", want: "0123456789"},
		{name: "too long", body: "0123\n5678\n0", want: "0123\n5678\n"},
		{name: "the line that is cut is dropped", body: "0123\n56789abc", want: "0123\n"},
		{name: "carriage returns end lines too", body: "0123\r56789abc", want: "0123\r"},
		{name: "one line only", body: "0123456789abc", want: ""},
	} {
		for _, coding := range []string{"identity", "gzip"} {
			t.Run(tc.name+", "+coding, func(t *testing.T) {
				server := serve(t, func(w http.ResponseWriter, r *http.Request) { write(w, coding, tc.body) })
				c := NewClient(ClientConfig{MaxSize: 10})
				got := c.Get(t.Context(), at(t, server, "a.test", "/robots.txt"), loopback)
				if got.Err != nil || string(got.Body) != tc.want {
					t.Errorf("%q is read as %q, %v; want %q", tc.body, got.Body, got.Err, tc.want)
				}
			})
		}
	}
}

func write(w http.ResponseWriter, coding, body string) {
	if coding != "gzip" {
		io.WriteString(w, body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	io.WriteString(z, body)
	z.Close()
}

func TestGetIsBounded(t *testing.T) {
	var emptyGzip bytes.Buffer
	gzip.NewWriter(&emptyGzip).Close()
	for _, tc := range []struct {
		name  string
		head  string
		piece string // sent again and again
		fails bool
	}{
		{name: "endless body", head: "HTTP/1.1 200 OK\r\n\r\n", piece: strings.Repeat("Allow: /\n", 1000)},
		{name: "endless header", head: "HTTP/1.1 200 OK\r\n",
			piece: "X: " + strings.Repeat("y", 1000) + "\r\n", fails: true},
		{name: "endless informational answers", piece: "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n",
			fails: true},
		{name: "endless padding of chunks", head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			piece: "1;" + strings.Repeat("y", 1000) + "\r\n\n\r\n", fails: true},
		{name: "endless compressed nothing", head: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
			piece: strings.Repeat(emptyGzip.String(), 100), fails: true},
		{name: "no HTTP", piece: strings.Repeat("\x00", 1000), fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewClient(ClientConfig{MaxSize: 10_000})
			sent := 0
			got := overPipe(t, c, func(conn net.Conn) {
				n, err := io.WriteString(conn, tc.head)
				for ; err == nil; n, err = io.WriteString(conn, tc.piece) {
					sent += n
				}
			})
			if (got.Err != nil) != tc.fails || tc.fails != (got.Status == 0) || len(got.Body) > 10_000 {
				t.Errorf("got %d, %d octets, %v", got.Status, len(got.Body), got.Err)
			}
			if bound := maxHeader + maxTLS + 30_000; sent > bound {
				t.Errorf("%d octets were read, want %d at most", sent, bound)
			}
		})
	}
}

// overPipe makes one request to a server that has read it when it is called. The connection ends
// with the call, or when the client ends it.
func overPipe(t *testing.T, c *Client, server func(net.Conn)) Response {
	t.Helper()
	var done sync.WaitGroup
	defer done.Wait()
	c.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		done.Go(func() {
			defer far.Close()
			if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
				server(far)
			}
		})
		return c.limit(near), nil
	}
	return c.Get(t.Context(), "http://a.test/robots.txt", loopback)
}

func TestGetTimesOut(t *testing.T) {
	for _, tc := range []struct {
		name string
		head string
	}{
		{name: "no answer", head: ""},
		{name: "half a header", head: "HTTP/1.1 200 OK\r\nX:"},
		{name: "half a body", head: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := overPipe(t, NewClient(ClientConfig{Timeout: 7 * time.Second}), func(conn net.Conn) {
					io.WriteString(conn, tc.head)
					io.Copy(io.Discard, conn)
				})
				if got.Status != 0 || !errors.Is(got.Err, context.DeadlineExceeded) {
					t.Errorf("got %+v, want %v", got, context.DeadlineExceeded)
				}
				if took := time.Since(start); took != 7*time.Second {
					t.Errorf("took %v, want 7s", took)
				}
			})
		})
	}
}

func TestGetCutShortIsNoAnswer(t *testing.T) {
	got := overPipe(t, NewClient(ClientConfig{}), func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *\n")
	})
	if got.Status != 0 || !errors.Is(got.Err, io.ErrUnexpectedEOF) {
		t.Errorf("got %+v, want %v", got, io.ErrUnexpectedEOF)
	}
	if !strings.Contains(got.Err.Error(), "http://a.test/robots.txt from 127.0.0.1") {
		t.Errorf("the error does not say what failed: %v", got.Err)
	}
}

func TestGetRefuses(t *testing.T) {
	c := NewClient(ClientConfig{})
	for _, tc := range []struct {
		name string
		url  string
		addr netip.Addr
	}{
		{name: "no address", url: "http://a.test/robots.txt"},
		{name: "no URL", url: "http://[/robots.txt", addr: loopback},
		{name: "another scheme", url: "file:///etc/passwd", addr: loopback},
		{name: "a port that is none", url: "http://a.test:99999/", addr: loopback},
	} {
		if got := c.Get(t.Context(), tc.url, tc.addr); got.Err == nil || got.Status != 0 {
			t.Errorf("%s: got %+v, want an error", tc.name, got)
		}
	}
}

func TestGetOverTLS(t *testing.T) {
	names := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.ServerName
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of refused handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	c := NewClient(ClientConfig{})
	c.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	c.transport.TLSClientConfig.ServerName = ""
	if got := c.Get(t.Context(), at(t, server, "example.com", "/robots.txt"), loopback); got.Status != 200 {
		t.Fatalf("got %+v", got)
	}
	if name := <-names; name != "example.com" {
		t.Errorf("asked for %q", name)
	}
	got := c.Get(t.Context(), at(t, server, "other.test", "/robots.txt"), loopback)
	if wrong := (x509.HostnameError{}); got.Status != 0 || !errors.As(got.Err, &wrong) {
		t.Errorf("a certificate of another host: got %+v", got)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		value string
		want  time.Duration
	}{
		{value: "", want: 0},
		{value: "0", want: 0},
		{value: " 120 ", want: 2 * time.Minute},
		{value: "3600", want: time.Hour},
		{value: "3601", want: time.Hour},
		{value: strings.Repeat("9", 100), want: time.Hour},
		{value: "-5", want: 0},
		{value: "1.5", want: 0},
		{value: "soon", want: 0},
		{value: "Fri, 02 Jan 2026 03:05:05 GMT", want: time.Minute},
		{value: "Friday, 02-Jan-26 03:05:05 GMT", want: time.Minute},
		{value: "Fri Jan  2 03:05:05 2026", want: time.Minute},
		{value: "Fri, 02 Jan 2026 03:03:05 GMT", want: 0},
		{value: "Sat, 03 Jan 2026 03:05:05 GMT", want: time.Hour},
	} {
		if got := ParseRetryAfter(tc.value, now); got != tc.want {
			t.Errorf("%.40q: %v, want %v", tc.value, got, tc.want)
		}
	}
}

// TestGetSendsNothingTooLate: a request that may not be sent any more once it is connected is not.
func TestGetSendsNothingTooLate(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	c, url := NewClient(ClientConfig{}), at(t, server, "a.test", "/robots.txt")
	var sent atomic.Int64
	get := func(by time.Time) Response {
		ctx := WithSending(t.Context(), Sending{By: by, Sent: func() {
			if sent.Add(1); asked.Load() > 0 {
				t.Error("Sent is called after the server has the request")
			}
		}})
		return c.Get(ctx, url, loopback)
	}
	if got := get(time.Now().Add(-time.Second)); !errors.Is(got.Err, ErrLate) || asked.Load() != 0 || sent.Load() != 0 {
		t.Errorf("Get past the moment = %+v, %d requests, Sent called %d times; want an error and none", got,
			asked.Load(), sent.Load())
	}
	if got := get(time.Now().Add(time.Hour)); got.Status != 200 || sent.Load() != 1 {
		t.Errorf("Get before the moment = %+v, Sent called %d times; want 200 and once", got, sent.Load())
	}
	asked.Store(0)
	if got := get(time.Time{}); got.Status != 200 || sent.Load() != 2 {
		t.Errorf("Get at any moment = %+v, Sent called %d times in all; want 200 and twice", got, sent.Load())
	}
}
