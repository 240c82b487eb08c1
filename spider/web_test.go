package spider

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"urlserver/internal/weburl"
	"urlserver/protocol"
)

// pipes is a listener whose connections are pipes, for web servers in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	over  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), over: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.over) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeWeb makes s fetch everything from handler, over pipes.
func pipeWeb(t *testing.T, s *Spider, handler http.HandlerFunc) {
	t.Helper()
	listener := newPipes()
	server := &http.Server{Handler: handler}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(listener) })
	s.fetcher.dial = listener.dial
	t.Cleanup(func() {
		s.closeIdle()
		server.Close()
		serving.Wait()
	})
}

// daemon is the daemon's end of a conversation.
type daemon struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
	ended chan error // result of converse
}

// newDaemon starts a conversation of s with the test over a pipe.
func newDaemon(t *testing.T, s *Spider) *daemon {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	d := &daemon{t: t, conn: ours, lines: bufio.NewReader(ours), ended: make(chan error, 1)}
	go func() {
		_, err := s.converse(ctx, theirs)
		d.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		ours.Close()
	})
	return d
}

func (d *daemon) send(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.conn, line); err != nil {
		d.t.Fatalf("send %.80q: %v", line, err)
	}
}

// receive returns the spider's next line without its end, or "" at the end of the stream.
func (d *daemon) receive() string {
	d.t.Helper()
	line, err := d.lines.ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(line, "\n")
}

func (d *daemon) want(want string) {
	d.t.Helper()
	if got := d.receive(); got != want {
		d.t.Fatalf("spider says %q; want %q", got, want)
	}
}

// web starts a server on a loopback address and returns its address.
func web(t *testing.T, handler http.HandlerFunc) (addr netip.Addr, port int) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return where(t, server.Listener.Addr())
}

func where(t *testing.T, addr net.Addr) (netip.Addr, int) {
	t.Helper()
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return at.Addr(), int(at.Port())
}

// raw starts a server that passes each connection to serve and closes it afterwards. It returns its
// address and the number of connections so far.
func raw(t *testing.T, serve func(net.Conn)) (netip.Addr, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return where(t, l.Addr())
}

// readRequest reads a request's head from r, up to the empty line; "" if there is none.
func readRequest(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return ""
		}
		head.WriteString(line)
		if line == "\r\n" {
			return head.String()
		}
	}
}

func mustURL(t testing.TB, format string, args ...any) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// fetchLine returns the daemon's line for a document.
func fetchLine(slot int, addr netip.Addr, url string) string {
	trans := protocol.Trans{Slot: uint32(slot), Active: 0, Generation: 7}
	return string(protocol.AppendFetch(nil, trans, fmt.Appendf(nil, "doc-%d", slot), addr, []byte(url)))
}

// newTestFetcher returns a fetcher with a short timeout, for hosts on loopback that answer at once.
func newTestFetcher(t *testing.T) *fetcher {
	f := newFetcher("testbot/1.0", 30*time.Second, false)
	t.Cleanup(f.transport.CloseIdleConnections)
	return f
}
