package spider

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFetchSendsWhatTheURLSays(t *testing.T) {
	heads := make(chan string, 1)
	addr, port := raw(t, func(conn net.Conn) {
		heads <- readRequest(bufio.NewReader(conn))
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	for _, c := range []struct{ name, url, target, host string }{
		{name: "plain", url: "http://a.test:%d/x?y=1", target: "/x?y=1", host: "a.test:%d"},
		{name: "no path", url: "http://a.test:%d", target: "/", host: "a.test:%d"},
		{name: "characters that net/url encodes", url: "http://a.test:%d/a|b^c[]%%zz?q=|'",
			target: "/a|b%5Ec[]%zz?q=|%27", host: "a.test:%d"},
		{name: "encoded slash", url: "http://a.test:%d/a%%2Fb%%2f", target: "/a%2Fb%2f", host: "a.test:%d"},
		{name: "empty query", url: "http://a.test:%d/x?", target: "/x?", host: "a.test:%d"},
		{name: "question marks", url: "http://a.test:%d/x??a?b", target: "/x??a?b", host: "a.test:%d"},
		{name: "two slashes", url: "http://a.test:%d//x//y?z", target: "//x//y?z", host: "a.test:%d"},
		{name: "two slashes, encoded", url: "http://a.test:%d//x%%2Fy?", target: "//x%2Fy?", host: "a.test:%d"},
		{name: "fragment", url: "http://a.test:%d/x#part", target: "/x", host: "a.test:%d"},
		{name: "credentials are not sent", url: "http://me:secret@a.test:%d/", target: "/", host: "a.test:%d"},
		{name: "IPv6 literal", url: "http://[2001:db8::1]:%d/", target: "/", host: "[2001:db8::1]:%d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := newTestFetcher(t).get(t.Context(), mustURL(t, c.url, port), addr)
			if err != nil || a.status != 204 {
				t.Fatalf("get = %d, %v; want 204", a.status, err)
			}
			a.free()
			head := <-heads
			want := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: "+c.host+"\r\n", c.target, port)
			if !strings.HasPrefix(head, want) {
				t.Errorf("request is\n%s\nwant it to begin with\n%s", head, want)
			}
			for _, unwanted := range []string{"Authorization", "Cookie", "Referer", "Transfer-Encoding",
				"Content-Length", "127.0.0.1"} {
				if strings.Contains(head, unwanted) {
					t.Errorf("request contains %s:\n%s", unwanted, head)
				}
			}
			if !strings.Contains(head, "\r\nUser-Agent: testbot/1.0\r\n") {
				t.Errorf("no User-Agent in\n%s", head)
			}
			if sent := string(a.requestHead()); !strings.HasPrefix(sent, want) {
				t.Errorf("the archive has the request as\n%s", sent)
			}
		})
	}
}

// A kept connection is reused only for the same name and address.
func TestFetchKeepsConnectionsByNameAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		dialled := make(chan string, 10)
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
		inner := s.fetcher.dial
		s.fetcher.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled <- addr
			return inner(ctx, network, addr)
		}
		for _, step := range []struct {
			name, url, addr, dial string
			after                 time.Duration
		}{
			{name: "first", url: "http://a.test/1", addr: "192.0.2.1", dial: "192.0.2.1:80"},
			{name: "again", url: "http://a.test/2", addr: "192.0.2.1"},
			{name: "other name", url: "http://b.test/", addr: "192.0.2.1", dial: "192.0.2.1:80"},
			{name: "other address", url: "http://a.test/3", addr: "192.0.2.2", dial: "192.0.2.2:80"},
			{name: "IPv6", url: "http://a.test:81/", addr: "2001:db8::1", dial: "[2001:db8::1]:81"},
			{name: "first again", url: "http://a.test/4", addr: "192.0.2.1", after: 3 * time.Second},
			{name: "too late", url: "http://a.test/5", addr: "192.0.2.1", after: 5 * time.Second,
				dial: "192.0.2.1:80"},
		} {
			time.Sleep(step.after)
			a, err := s.fetcher.get(t.Context(), mustURL(t, "%s", step.url), netip.MustParseAddr(step.addr))
			if err != nil || a.status != 200 {
				t.Fatalf("%s: get = %d, %v", step.name, a.status, err)
			}
			a.free()
			synctest.Wait() // the connection is back in the pool
			var got string
			select {
			case got = <-dialled:
			default:
			}
			if got != step.dial {
				t.Errorf("%s: dialled %q; want %q", step.name, got, step.dial)
			}
		}
	})
}

// If a host receives a request on a kept connection and closes it, the request is not repeated.
func TestFetchIsNotRepeated(t *testing.T) {
	var requests atomic.Int32
	addr, port := raw(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for readRequest(in) != "" {
			if requests.Add(1) == 2 {
				return
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	f := newTestFetcher(t)
	first, err := f.get(t.Context(), mustURL(t, "http://a.test:%d/1", port), addr)
	if err != nil || string(first.body) != "ok" {
		t.Fatalf("first get = %q, %v", first.body, err)
	}
	first.free()
	if second, err := f.get(t.Context(), mustURL(t, "http://a.test:%d/2", port), addr); err == nil {
		t.Errorf("second get = %d; want an error", second.status)
	}
	if got := requests.Load(); got != 2 {
		t.Errorf("the host saw %d requests; want 2", got)
	}
}

// sleepy is an empty body whose Read takes a while.
type sleepy struct{ once }

func (s sleepy) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.once.Read(p)
}

// No request announces a body, even if the goroutine that reads it runs late.
func TestFetchAnnouncesNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.ContentLength, r.TransferEncoding)
		})
		req := s.fetcher.request(t.Context(), mustURL(t, "http://a.test/"), testAddr)
		req.Body = sleepy{}
		resp, err := s.fetcher.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "0 []" {
			t.Errorf("length and transfer coding of the request are %s, %v; want 0 []", got, err)
		}
	})
}

func TestFetchDoesNotFollow(t *testing.T) {
	var requests atomic.Int32
	addr, port := web(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
		http.Redirect(w, r, "/there", http.StatusFound)
	})
	a, err := newTestFetcher(t).get(t.Context(), mustURL(t, "http://a.test:%d/here", port), addr)
	if err != nil || a.status != 302 || a.header.Get("Location") != "/there" {
		t.Fatalf("get = %d, %v, %v; want 302 to /there", a.status, a.header, err)
	}
	a.free()
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests; want 1", got)
	}
}

func TestFetchTLS(t *testing.T) {
	names := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Proto, r.Host, r.URL)
	}))
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		names <- hello.ServerName
		return nil, nil
	}}
	server.EnableHTTP2 = true
	server.Config.ErrorLog = silent()
	server.StartTLS()
	defer server.Close()
	addr, port := where(t, server.Listener.Addr())

	for _, c := range []struct {
		name, host, sni string
		verify, ok      bool
	}{
		{name: "name", host: "a.test", sni: "a.test", ok: true},
		{name: "IPv4 literal", host: "192.0.2.1", ok: true},
		{name: "IPv6 literal", host: "[2001:db8::1]", ok: true},
		{name: "refused certificate", host: "a.test", sni: "a.test", verify: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFetcher("testbot", 30*time.Second, c.verify)
			defer f.transport.CloseIdleConnections()
			a, err := f.get(t.Context(), mustURL(t, "https://%s:%d//x|y?z", c.host, port), addr)
			defer a.free()
			if sni := <-names; sni != c.sni {
				t.Errorf("SNI %q; want %q", sni, c.sni)
			}
			if (err == nil) != c.ok {
				t.Fatalf("get: %v; want success %v", err, c.ok)
			}
			if want := fmt.Sprintf("HTTP/2.0 %s:%d //x%%7Cy?z", c.host, port); c.ok && string(a.body) != want {
				t.Errorf("host saw %q; want %q", a.body, want)
			}
		})
	}
}

// hostileHost is a host that answers a request as none should.
type hostileHost struct {
	name   string
	answer func(io.Writer) // writes until the spider closes the connection
	status int             // 0: an error
	body   int             // its length
	cut    cut
}

func hostileHosts() []hostileHost {
	ok := "HTTP/1.1 200 OK\r\n"
	return []hostileHost{
		{name: "hangs up", answer: func(io.Writer) {}},
		{name: "no HTTP", answer: say("220 mail.test ESMTP\r\n")},
		{name: "status of four digits", answer: say("HTTP/1.1 2000 OK\r\n\r\n")},
		{name: "endless header", answer: func(w io.Writer) {
			io.WriteString(w, ok)
			for forever(w, "X-Long: "+strings.Repeat("x", 1000)+"\r\n") {
			}
		}},
		{name: "endless header line", answer: func(w io.Writer) {
			io.WriteString(w, ok+"X-Long: ")
			for forever(w, strings.Repeat("x", 1000)) {
			}
		}},
		{name: "endless 100 Continue", answer: func(w io.Writer) {
			for forever(w, "HTTP/1.1 100 Continue\r\n\r\n") {
			}
		}},
		{name: "endless body", status: 200, body: maxBody, cut: cutLength, answer: func(w io.Writer) {
			io.WriteString(w, ok+"\r\n")
			for forever(w, strings.Repeat("x", 64<<10)) {
			}
		}},
		{name: "endless chunks", status: 200, body: maxBody, cut: cutLength, answer: func(w io.Writer) {
			io.WriteString(w, ok+"Transfer-Encoding: chunked\r\n\r\n")
			for forever(w, "10000\r\n"+strings.Repeat("x", 64<<10)+"\r\n") {
			}
		}},
		{name: "a body of just the limit", status: 200, body: maxBody, answer: func(w io.Writer) {
			fmt.Fprintf(w, "%sContent-Length: %d\r\n\r\n%s", ok, maxBody, strings.Repeat("x", maxBody))
		}},
		{name: "a body of just the small size", status: 200, body: smallBody, answer: func(w io.Writer) {
			fmt.Fprintf(w, "%sContent-Length: %d\r\n\r\n%s", ok, smallBody, strings.Repeat("x", smallBody))
		}},
		{name: "less than announced", status: 200, body: 3, cut: cutDisconnect,
			answer: say(ok + "Content-Length: 10\r\n\r\nabc")},
		{name: "more than announced", status: 200, body: 3, answer: say(ok + "Content-Length: 3\r\n\r\nabcdef")},
		{name: "broken chunk", status: 200, body: 3, cut: cutDisconnect,
			answer: say(ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n")},
		{name: "huge announcement", status: 200, body: 3, cut: cutDisconnect,
			answer: say(ok + "Content-Length: 9223372036854775807\r\n\r\nabc")},
		{name: "switches protocol", status: 101,
			answer: say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc")},
	}
}

func TestFetchOfHostileHosts(t *testing.T) {
	for _, c := range hostileHosts() {
		t.Run(c.name, func(t *testing.T) {
			addr, port := raw(t, func(conn net.Conn) {
				readRequest(bufio.NewReader(conn))
				c.answer(conn)
			})
			f := newTestFetcher(t)
			a, err := f.get(t.Context(), mustURL(t, "http://a.test:%d/", port), addr)
			if (err == nil) != (c.status != 0) {
				t.Fatalf("get = %d, %v; want status %d", a.status, err, c.status)
			}
			if a.status != c.status || len(a.body) != c.body || a.cut != c.cut {
				t.Errorf("status %d, %d bytes, cut %q; want %d, %d, %q", a.status, len(a.body), a.cut,
					c.status, c.body, c.cut)
			}
			a.free()
			if len(f.big) != 0 {
				t.Errorf("%d places for big bodies not given back", len(f.big))
			}
		})
	}
}

func say(s string) func(io.Writer) { return func(w io.Writer) { io.WriteString(w, s) } }

func forever(w io.Writer, s string) bool {
	_, err := io.WriteString(w, s)
	return err == nil
}

// A host that is slow at any stage takes the timeout and no longer.
func TestFetchTimeout(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		status int
		cut    cut
	}{
		{name: "before the header", handle: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{name: "within the body", status: 200, cut: cutTime, handle: func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "begin")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		{name: "a byte a second", status: 200, cut: cutTime, handle: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Second):
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{Timeout: 10 * time.Second})
				pipeWeb(t, s, c.handle)
				start := time.Now()
				a, err := s.fetcher.get(t.Context(), mustURL(t, "http://a.test/"), netip.MustParseAddr("192.0.2.1"))
				defer a.free()
				if took := time.Since(start); took != 10*time.Second {
					t.Errorf("took %v; want 10s", took)
				}
				if a.status != c.status || a.cut != c.cut || (err == nil) != (c.status != 0) || a.report() != 0 {
					t.Errorf("get = %d, cut %q, report %d, %v; want %d, %q, 0", a.status, a.cut, a.report(),
						err, c.status, c.cut)
				}
			})
		})
	}
}

// While all maxBig large bodies are being read, small ones are read, and further large ones wait
// until their own timeout.
func TestBigBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Timeout: 10 * time.Second})
		pipeWeb(t, s, func(w http.ResponseWriter, r *http.Request) {
			size := map[string]int{"/small": 1000, "/big": smallBody + 1}[r.URL.Path]
			w.Write(make([]byte, size))
		})
		for range maxBig {
			s.fetcher.big <- struct{}{}
		}
		for _, c := range []struct {
			path string
			cut  cut
		}{{path: "small"}, {path: "big", cut: cutTime}} {
			a, err := s.fetcher.get(t.Context(), mustURL(t, "http://a.test/%s", c.path),
				netip.MustParseAddr("192.0.2.1"))
			if err != nil || a.cut != c.cut {
				t.Errorf("%s: cut %q, %v; want %q", c.path, a.cut, err, c.cut)
			}
			a.free()
		}
		<-s.fetcher.big
		a, err := s.fetcher.get(t.Context(), mustURL(t, "http://a.test/big"), netip.MustParseAddr("192.0.2.1"))
		if err != nil || a.cut != "" || len(a.body) != smallBody+1 {
			t.Errorf("with a place free: %d bytes, cut %q, %v", len(a.body), a.cut, err)
		}
		a.free()
	})
}

func TestDecode(t *testing.T) {
	bomb := gzipped(bytes.Repeat([]byte("x"), maxBody+1000))
	for _, c := range []struct {
		name, coding string
		body         []byte
		want         int // bytes
	}{
		{name: "none", body: []byte("abc"), want: 3},
		{name: "identity", coding: "identity", body: []byte("abc"), want: 3},
		{name: "gzip", coding: "gzip", body: gzipped([]byte("abcd")), want: 4},
		{name: "case and space", coding: " X-GZIP ", body: gzipped([]byte("abcd")), want: 4},
		{name: "bomb", coding: "gzip", body: bomb, want: maxBody},
		{name: "not gzip", coding: "gzip", body: []byte("abc")},
		{name: "not asked for", coding: "br", body: []byte("abc")},
		{name: "two", coding: "gzip, gzip", body: gzipped(gzipped([]byte("abc")))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := io.ReadAll(decode(http.Header{"Content-Encoding": {c.coding}}, c.body, maxBody))
			if len(got) != c.want {
				t.Errorf("%d bytes; want %d", len(got), c.want)
			}
		})
	}
	cutOff := gzipped([]byte(strings.Repeat("<a href=x>", 100)))
	if got, err := io.ReadAll(decode(http.Header{"Content-Encoding": {"gzip"}},
		cutOff[:len(cutOff)-6], maxBody)); err == nil || len(got) == 0 {
		t.Errorf("of a cut body: %d bytes, %v; want some, and an error", len(got), err)
	}
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}
