package access

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

const (
	freeReads = 12                     // a TLS handshake and what stands before the first proof take half of them
	readEvery = 500 * time.Millisecond // beyond those, and at the same moments for all, which saves wake-ups
	maxRead   = 16 << 10               // bytes at once
)

// Wary is l whose connections are read little and late until Trust is told of them: what a peer sends that has not proved
// itself waits in the kernel, so that neither a byte now and then nor a flood has the process work. Who goes straight
// to its proof meets none of this.
func Wary(l net.Listener) net.Listener { return &wary{l, time.Now()} }

type wary struct {
	net.Listener
	began time.Time
}

// Accept is [net.Listener].
func (w *wary) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stranger{Conn: conn, at: w, free: make(chan struct{})}, nil
}

// Trust has the connection whose RemoteAddr this is be read as it comes, from now on. Other addresses mean nothing
// to it. Safe for concurrent use.
func Trust(remote net.Addr) {
	if a, ok := remote.(meteredAddr); ok {
		remote = a.Addr
	}
	if a, ok := remote.(strangersAddr); ok {
		a.of.trust()
	}
}

// TrustCaller is Trust for the connection that a gRPC call came by, or a request of an HTTP server with ConnContext.
func TrustCaller(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		Trust(p.Addr)
	}
}

// ConnContext is for [http.Server].
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: conn.RemoteAddr()})
}

// stranger is a connection that is read by one goroutine at a time.
type stranger struct {
	net.Conn
	at    *wary
	known atomic.Bool
	once  sync.Once
	free  chan struct{} // closed when it is known, or closed
	spent time.Duration // the reader's: when all its free reads will be there again, since the listener began
}

// strangersAddr is an address by which Trust finds the connection.
type strangersAddr struct {
	net.Addr
	of *stranger
}

// RemoteAddr is [net.Conn].
func (s *stranger) RemoteAddr() net.Addr { return strangersAddr{s.Conn.RemoteAddr(), s} }

func (s *stranger) trust() {
	s.known.Store(true)
	s.release()
}

func (s *stranger) release() { s.once.Do(func() { close(s.free) }) }

// Close is [net.Conn].
func (s *stranger) Close() error {
	s.release()
	return s.Conn.Close()
}

// Read is [net.Conn]. It may be late for its deadline by readEvery.
func (s *stranger) Read(p []byte) (int, error) {
	if s.known.Load() {
		return s.Conn.Read(p)
	}
	if wait := s.ration(time.Since(s.at.began)); wait > 0 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.free:
			timer.Stop()
		}
	}
	return s.Conn.Read(p[:min(len(p), maxRead)])
}

// ration counts a read, and returns how long it has to wait.
func (s *stranger) ration(now time.Duration) time.Duration {
	s.spent = max(s.spent, now.Truncate(readEvery)) + readEvery
	return s.spent - freeReads*readEvery - now
}
