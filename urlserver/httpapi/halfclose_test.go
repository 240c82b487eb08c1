package httpapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/docindex/export"
	"urlserver/docindex/memory"
)

// halfClosed is a connection whose client sends a text, and then closes its side.
type halfClosed struct {
	net.Conn
	text io.Reader
}

func (c halfClosed) Read(p []byte) (int, error) { return c.text.Read(p) }

// slowStore is a store whose puts and counts take a while. They fail if nobody wants the result any more.
type slowStore struct {
	*memory.Store
	took time.Duration
}

func (s slowStore) Put(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	select {
	case <-time.After(s.took):
		return s.Store.Put(ctx, p)
	case <-ctx.Done():
		return docindex.PutResult{}, ctx.Err()
	}
}

func (s slowStore) Count(ctx context.Context, scope *docindex.Scope) (docindex.Counts, error) {
	select {
	case <-time.After(s.took):
		return s.Store.Count(ctx, scope)
	case <-ctx.Done():
		return docindex.Counts{}, ctx.Err()
	}
}

func (s slowStore) ListCrawls(ctx context.Context, text string, n int) ([]docindex.CrawlState, int, error) {
	select {
	case <-time.After(s.took):
		return s.Store.ListCrawls(ctx, text, n)
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

func (s slowStore) Crawls(ctx context.Context) ([]string, error) {
	select {
	case <-time.After(s.took):
		return s.Store.Crawls(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newSlow returns a server whose store takes a while.
func newSlow(t *testing.T, took time.Duration) *Server {
	store := slowStore{memory.New(), took}
	return New(Config{Daemon: idle(t, store), Store: store, Crawls: store, Log: zerolog.Nop(),
		Dump: func(d DumpStore) http.Handler { return export.Handler(d) }})
}

const putOfOne = "POST /docindex/urls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\nhttp://a.example/"

const dumpOfAll = "GET /docindex/dump HTTP/1.1\r\nHost: localhost\r\n\r\n"

const countOfAll = "GET /docindex/counts HTTP/1.1\r\nHost: localhost\r\n\r\n"

// sendAndClose has a server answer a request whose client closes its side behind it.
func sendAndClose(t *testing.T, s *Server, request string) (from net.Conn, stop context.CancelFunc, ended chan error) {
	t.Helper()
	l := newPipes()
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	ours, theirs := net.Pipe()
	l.conns <- halfClosed{theirs, strings.NewReader(request)}
	return ours, stop, ended
}

// TestHalfClosed has a client close its side of the connection when it has sent its request, as nc -N
// does: it gets its answer, however long that takes.
func TestHalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, stop, ended := sendAndClose(t, newSlow(t, 10*time.Second), putOfOne)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(body), `"new":1`) {
			t.Errorf("answer %d %s, %v; want 200 with one new URL", resp.StatusCode, body, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestClientHasGone has clients close their side of the connection, which those that have gone did, too. A
// request that only reads ends then, and a change some time later: no client holds a connection for longer.
func TestClientHasGone(t *testing.T) {
	for request, most := range map[string]time.Duration{countOfAll: 0, putOfOne: outlives} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			conn, stop, ended := sendAndClose(t, newSlow(t, time.Hour), request)
			answer, err := io.ReadAll(conn)
			if took := time.Since(began); took != most || err != nil {
				t.Errorf("%s: ended after %v with %q, %v; want %v", request, took, answer, err, most)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSaysThatClientClosed has clients close their side of the connection before they have an answer, which
// then names the reason.
func TestSaysThatClientClosed(t *testing.T) {
	for _, request := range []string{
		"GET /api/crawls HTTP/1.1\r\nHost: localhost\r\n\r\n", countOfAll, putOfOne, dumpOfAll,
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, stop, ended := sendAndClose(t, newSlow(t, time.Minute), request)
			answer, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(answer), `{"error":"the client has closed its side`) {
				t.Errorf("%s: answer %q, %v; want why there is no other one", request, answer, err)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// breaking is a listener that fails at some time.
type breaking struct {
	net.Listener
	conns chan net.Conn
	fail  chan struct{}
}

func (l breaking) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.fail:
		return nil, net.ErrClosed
	}
}

func (breaking) Close() error   { return nil }
func (breaking) Addr() net.Addr { return &net.TCPAddr{} }

// TestListenerFails: a server whose listener fails ends what is under way.
func TestListenerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, 24*time.Hour)
		l := breaking{conns: make(chan net.Conn, 1), fail: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(t.Context(), l) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		go io.Copy(io.Discard, ours)
		if _, err := io.WriteString(ours, putOfOne); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		close(l.fail)
		if err := <-ended; err == nil || time.Since(began) > stopWait {
			t.Errorf("ended after %v: %v; want an error within %v", time.Since(began), err, stopWait)
		}
	})
}

// TestStopEndsWhatIsUnderWay stops a server while a store does not answer.
func TestStopEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, stop, ended := sendAndClose(t, newSlow(t, 24*time.Hour), putOfOne)
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-ended; err != nil || time.Since(began) > stopWait {
			t.Errorf("stopped after %v: %v; want at most %v", time.Since(began), err, stopWait)
		}
	})
}
