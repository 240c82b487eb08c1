package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/netguard"
	"urlserver/internal/resolver"
	"urlserver/urlserver"
)

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// stage is a server over pipes in virtual time. Its daemon does not run; only the index is used.
type stage struct {
	*pipes
	store *memory.Store
	end   context.CancelFunc
	ended chan error
}

func newStage(t *testing.T) *stage {
	t.Helper()
	st := &stage{pipes: newPipes(), store: memory.New(), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	st.end = cancel
	s := New(Config{Daemon: idle(t, st.store), Store: st.store, Log: zerolog.Nop()})
	go func() { st.ended <- s.Serve(ctx, st.pipes) }()
	return st
}

// idle is a daemon that does not run.
func idle(t *testing.T, store docindex.Store) *urlserver.Daemon {
	t.Helper()
	res, err := resolver.New(resolver.Config{HostsFile: "-", Servers: []string{"127.0.0.1:9"}})
	if err != nil {
		t.Fatal(err)
	}
	return urlserver.New(configs.Default(), urlserver.Parts{Index: store, Store: store, Resolver: res})
}

const uploadHead = "POST /docindex/urls HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// send writes. It fails the test if the other side has closed the connection.
func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// An upload may take for ever, as long as data arrives.
func TestLongUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		conn := st.dial()
		send(t, conn, uploadHead)
		for i := range 100 {
			time.Sleep(ioTimeout - time.Second)
			send(t, conn, chunk(fmt.Sprintf("http://127.0.0.1/%d\n", i)))
		}
		send(t, conn, "0\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || err != nil || !strings.Contains(string(body), `"new":100`) {
			t.Errorf("answer %s %s, %v", resp.Status, body, err)
		}
		conn.Close()
		st.end()
		if err := <-st.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// A client that stops sending is cut off: in the header, in a body, and between requests.
func TestSlowPeers(t *testing.T) {
	for _, c := range []struct {
		name, said string
		after      time.Duration
	}{
		{name: "says nothing", said: "", after: readHeaderTimeout},
		{name: "stops in the header", said: "GET /healthz HTTP/1.1\r\nHost: loc", after: readHeaderTimeout},
		{name: "stops in an upload", said: uploadHead + chunk("http://127.0.0.1/\n"), after: ioTimeout},
		{name: "stops in a small body",
			said:  "POST /api/hosts/a/block HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
			after: ioTimeout},
		{name: "stops in a body that nobody reads",
			said: "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", after: ioTimeout},
		{name: "asks no more", said: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", after: keepAlive},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t)
				conn := st.dial()
				start := time.Now()
				go io.WriteString(conn, c.said) // the other side may close the connection meanwhile
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Errorf("read: %v", err)
				}
				if got := time.Since(start); got < c.after || got > c.after+time.Second {
					t.Errorf("cut off after %v; want %v", got, c.after)
				}
				st.end()
				<-st.ended
			})
		})
	}
}

// A body that is read into memory has a total timeout.
func TestWholeBodyHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		conn := st.dial()
		start := time.Now()
		send(t, conn, "POST /docindex/outcomes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
		var talk sync.WaitGroup
		talk.Go(func() {
			for { // until the other side closes the connection
				time.Sleep(ioTimeout / 2)
				if _, err := io.WriteString(conn, chunk("\n")); err != nil {
					return
				}
			}
		})
		_, err := io.Copy(io.Discard, conn)
		if got := time.Since(start); got < bodyTimeout || got > bodyTimeout+time.Second {
			t.Errorf("cut off after %v (%v); want %v", got, err, bodyTimeout)
		}
		conn.Close()
		talk.Wait()
		st.end()
		<-st.ended
	})
}

// A client that stops reading an answer is cut off, but not one that reads slowly.
func TestSlowReaders(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause time.Duration
		whole bool
	}{
		{name: "slow", pause: ioTimeout - time.Second, whole: true},
		{name: "too slow", pause: ioTimeout + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 10 * writePiece
				s := &Server{ioTimeout: ioTimeout}
				body := func(w http.ResponseWriter, _ *http.Request) {
					w.Write(make([]byte, size)) // the client's error
				}
				srv := &http.Server{Handler: s.withDeadlines(http.HandlerFunc(body))}
				l := newPipes()
				go srv.Serve(l)
				conn := l.dial()
				send(t, conn, "GET / HTTP/1.0\r\n\r\n")
				in, got := bufio.NewReaderSize(conn, writePiece), 0
				for {
					time.Sleep(c.pause)
					n, err := io.CopyN(io.Discard, in, writePiece)
					got += int(n)
					if err != nil {
						break
					}
				}
				if whole := got > size; whole != c.whole {
					t.Errorf("%d bytes came; want all %d: %t", got, size, c.whole)
				}
				conn.Close()
				srv.Close()
			})
		})
	}
}

// When Serve ends, it waits for answers in progress, but not for ever.
func TestServeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		idle, busy := st.dial(), st.dial()
		send(t, idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil {
			t.Fatal(err)
		}
		send(t, busy, uploadHead+chunk("http://127.0.0.1/\n"))
		synctest.Wait()
		start := time.Now()
		st.end()
		if err := <-st.ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if got := time.Since(start); got < stopWait || got > stopWait+time.Second {
			t.Errorf("Serve ended after %v; want %v, for the upload", got, stopWait)
		}
		for _, conn := range []net.Conn{idle, busy} {
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Error("a connection is left")
			}
		}
	})
}

func TestServeEndsAtOnceWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		start := time.Now()
		st.end()
		if err := <-st.ended; err != nil || time.Since(start) != 0 {
			t.Errorf("Serve: %v after %v; want none at once", err, time.Since(start))
		}
	})
}

// broken is a listener that fails.
type broken struct{ *pipes }

func (broken) Accept() (net.Conn, error) { return nil, errBroken }

var errBroken = errors.New("broken")

func TestServeTellsOfABrokenListener(t *testing.T) {
	store := memory.New()
	s := New(Config{Daemon: idle(t, store), Store: store, Log: zerolog.Nop()})
	if err := s.Serve(t.Context(), broken{newPipes()}); !errors.Is(err, errBroken) {
		t.Errorf("Serve: %v; want %v", err, errBroken)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		var conns []net.Conn
		for range netguard.MaxConns {
			conns = append(conns, st.dial())
		}
		more := make(chan net.Conn)
		go func() { more <- st.dial() }()
		synctest.Wait()
		select {
		case <-more:
			t.Error("one more connection is served")
		default:
		}
		conns[0].Close()
		conns = append(conns, <-more)
		for _, c := range conns {
			c.Close()
		}
		st.end()
		<-st.ended
	})
}

func TestHeaderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t)
		conn := st.dial()
		// cut off meanwhile
		go io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "+strings.Repeat("x",
			2*netguard.MaxHeader))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a long header: %v, %v", resp, err)
		}
		conn.Close()
		st.end()
		<-st.ended
	})
}
