package spider

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start runs f until the test ends, and checks that it returns nil then.
func start(t *testing.T, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v; want nil", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Several daemons at once, each with documents of its own.
func TestServe(t *testing.T) {
	const daemons, each = 8, 200
	addr, port := web(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<a href=x>") })
	l := listen(t)
	s := New(Config{Timeout: time.Hour, StatusTimeout: time.Hour})
	stop := start(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	var speaking sync.WaitGroup
	for range daemons {
		speaking.Go(func() {
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for i := range each {
				io.WriteString(conn, fetchLine(i, addr, fmt.Sprintf("http://h%d.test:%d/", i%10, port)))
			}
			seen := make(map[string]bool)
			for lines := bufio.NewScanner(conn); len(seen) < each && lines.Scan(); {
				if lines.Text() != "ROOM 10000" {
					seen[lines.Text()] = true
				}
			}
			for i := range each {
				if line := fmt.Sprintf("%d.0.7 DONE 200", i); !seen[line] {
					t.Errorf("no %q", line)
				}
			}
		})
	}
	speaking.Wait()
	stop()
	got := s.Stats()
	if got.Fetched != daemons*each || got.Links != daemons*each || got.InFlight != 0 || got.Daemons != 0 {
		t.Errorf("stats are %+v", got)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("still listening")
	}
}

func TestServeWhoseListenerEnds(t *testing.T) {
	l := listen(t)
	ended := make(chan error)
	go func() { ended <- New(Config{}).Serve(t.Context(), l) }()
	l.Close()
	if err := <-ended; err == nil {
		t.Error("Serve = nil; want an error")
	}
}

// flaky is a listener without file descriptors at first.
type flaky struct {
	*pipes
	at chan time.Time
}

func (f *flaky) Accept() (net.Conn, error) {
	select {
	case f.at <- time.Now():
		return nil, errors.New("accept: too many open files")
	case <-f.over:
		return nil, net.ErrClosed
	}
}

func TestServeGoesOnAfterFailedAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &flaky{pipes: newPipes(), at: make(chan time.Time)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- New(Config{}).Serve(ctx, l) }()
		last := <-l.at
		for _, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond,
			400 * time.Millisecond} {
			now := <-l.at
			if got := now.Sub(last); got != want {
				t.Errorf("tried again after %v; want %v", got, want)
			}
			last = now
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v; want nil", err)
		}
	})
}

// The daemon stops and starts again. The spider sends its token and spiderid each time.
func TestDial(t *testing.T) {
	addr, port := web(t, func(http.ResponseWriter, *http.Request) {})
	l := listen(t)
	s := New(Config{Token: "secret", ID: "link"})
	stop := start(t, func(ctx context.Context) error { return s.Dial(ctx, l.Addr().String()) })
	for range 3 {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(conn)
		if lines.Scan(); lines.Text() != "AUTH secret" {
			t.Errorf("first line is %q; want AUTH secret", lines.Text())
		}
		if lines.Scan(); lines.Text() != "SPIDER link" {
			t.Errorf("second line is %q; want SPIDER link", lines.Text())
		}
		if lines.Scan(); lines.Text() != "ROOM 10000" {
			t.Errorf("third line is %q; want ROOM 10000", lines.Text())
		}
		io.WriteString(conn, fetchLine(1, addr, fmt.Sprintf("http://a.test:%d/", port)))
		if lines.Scan(); lines.Text() != "1.0.7 DONE 200" {
			t.Errorf("fourth line is %q", lines.Text())
		}
		io.WriteString(conn, "half a li")
		conn.Close()
	}
	stop()
	if got := s.Stats(); got.Fetched != 3 || got.Daemons != 0 {
		t.Errorf("stats are %+v", got)
	}
}

func TestDialOverTLS(t *testing.T) {
	donor := httptest.NewTLSServer(nil) // only its certificate is used, of example.com
	defer donor.Close()
	roots := x509.NewCertPool()
	roots.AddCert(donor.Certificate())
	for _, c := range []struct {
		name string
		cfg  *tls.Config
		ok   bool
	}{
		{name: "name of the address", cfg: &tls.Config{RootCAs: roots}, ok: true},
		{name: "name given", cfg: &tls.Config{RootCAs: roots, ServerName: "example.com"}, ok: true},
		{name: "unknown CA", cfg: &tls.Config{RootCAs: x509.NewCertPool()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := tls.NewListener(listen(t), &tls.Config{Certificates: donor.TLS.Certificates})
			s := New(Config{Token: "secret", TLS: c.cfg})
			start(t, func(ctx context.Context) error { return s.Dial(ctx, l.Addr().String()) })
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			line, err := bufio.NewReader(conn).ReadString('\n')
			if (err == nil) != c.ok || c.ok && line != "AUTH secret\n" {
				t.Errorf("read %q, %v; want success %v", line, err, c.ok)
			}
		})
	}
}

func TestDialNobody(t *testing.T) {
	l := listen(t)
	l.Close()
	s := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Dial(ctx, l.Addr().String()); err != nil {
		t.Errorf("Dial = %v; want nil", err)
	}
	if _, err := s.connect(t.Context(), l.Addr().String()); err == nil {
		t.Error("connected to nobody")
	}
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000} {
			start := time.Now()
			b.sleep(t.Context())
			if got := time.Since(start); got != want*time.Millisecond {
				t.Errorf("slept %v; want %v", got, want*time.Millisecond)
			}
		}
		b.reset()
		start := time.Now()
		b.sleep(t.Context())
		if got := time.Since(start); got != minBackoff {
			t.Errorf("after reset slept %v; want %v", got, minBackoff)
		}
	})
}

// BenchmarkDocuments measures the whole way of a document over sockets, 100 in flight on 10 hosts:
// line, fetch of a small page, DONE. The web server is in the same process.
func BenchmarkDocuments(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<a href=/x>x</a>")
	}))
	defer server.Close()
	at, err := netip.ParseAddrPort(server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	ours, theirs := net.Pipe()
	s := New(Config{})
	defer s.closeIdle()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.converse(b.Context(), theirs)
	}()
	send := func(i int) {
		io.WriteString(ours, fetchLine(i, at.Addr(), fmt.Sprintf("http://h%d.test:%d/", i%10, at.Port())))
	}
	for i := range 100 {
		send(i)
	}
	lines := bufio.NewScanner(ours)
	for i := 0; b.Loop(); i++ {
		if !lines.Scan() {
			b.Fatal("the conversation ended")
		}
		send(i)
	}
	ours.Close()
	<-ended
}
