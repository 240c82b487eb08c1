package netguard

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	freeReads = 12                     // not delayed; a TLS handshake and the authentication take half of them
	readEvery = 500 * time.Millisecond // for later reads, at the same moments for all, which saves wake-ups
	maxRead   = 16 << 10               // bytes a read
)

// ThrottleUnauthenticated returns a listener whose connections have a limited rate of reads until
// MarkAuthenticated is called for them. What an unauthenticated peer sends waits in the kernel, so
// that neither single bytes nor a flood make the process work. A peer that authenticates at once is
// not delayed.
func ThrottleUnauthenticated(l net.Listener) net.Listener { return &throttlingListener{l, time.Now()} }

type throttlingListener struct {
	net.Listener
	began time.Time
}

// Accept is [net.Listener].
func (l *throttlingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &throttledConn{Conn: conn, listener: l, released: make(chan struct{})}, nil
}

// MarkAuthenticated ends the throttling of the connection with this RemoteAddr. It ignores the
// addresses of other connections. It is safe for concurrent use.
func MarkAuthenticated(remote net.Addr) {
	if a, ok := remote.(throttledAddr); ok {
		a.of.markAuthenticated()
	}
}

// IsAuthenticated reports whether the connection with this RemoteAddr is not throttled, or not any
// more.
func IsAuthenticated(remote net.Addr) bool {
	a, ok := remote.(throttledAddr)
	return !ok || a.of.authenticated.Load()
}

// callerKey is the key of a context under which ConnContext notes the address of the connection.
type callerKey struct{}

// MarkCallerAuthenticated is MarkAuthenticated for the connection of a request to an HTTP server
// with ConnContext.
func MarkCallerAuthenticated(ctx context.Context) {
	if remote, ok := ctx.Value(callerKey{}).(net.Addr); ok {
		MarkAuthenticated(remote)
	}
}

// ConnContext is for the field of this name of [http.Server]; see MarkCallerAuthenticated.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, conn.RemoteAddr())
}

// throttledConn is a connection whose reads are throttled until it is authenticated. One goroutine
// at a time may read.
type throttledConn struct {
	net.Conn
	listener      *throttlingListener
	authenticated atomic.Bool
	once          sync.Once
	released      chan struct{} // closed when the connection is authenticated or closed
	// refilled is when all free reads will be available again, since the listener's beginning. Only
	// the reader uses it.
	refilled time.Duration
}

// throttledAddr is the address by which MarkAuthenticated finds the connection.
type throttledAddr struct {
	net.Addr
	of *throttledConn
}

// RemoteAddr is [net.Conn].
func (c *throttledConn) RemoteAddr() net.Addr { return throttledAddr{c.Conn.RemoteAddr(), c} }

func (c *throttledConn) markAuthenticated() {
	c.authenticated.Store(true)
	c.release()
}

func (c *throttledConn) release() { c.once.Do(func() { close(c.released) }) }

// Close is [net.Conn]. It releases a waiting Read when there is nothing more to read.
func (c *throttledConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// Read is [net.Conn]. It may return up to readEvery after its deadline.
func (c *throttledConn) Read(p []byte) (int, error) {
	if c.authenticated.Load() {
		return c.Conn.Read(p)
	}
	if wait := c.countRead(time.Since(c.listener.began)); wait > 0 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.released:
			timer.Stop()
		}
	}
	return c.Conn.Read(p[:min(len(p), maxRead)])
}

// countRead counts a read and returns how long it has to wait.
func (c *throttledConn) countRead(now time.Duration) time.Duration {
	c.refilled = max(c.refilled, now.Truncate(readEvery)) + readEvery
	return c.refilled - freeReads*readEvery - now
}
