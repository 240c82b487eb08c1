package grpcclient

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// silence is the least time without a byte from a service after which its connection may be closed.
const silence = 250 * time.Millisecond

// watch closes a connection if a call on it has waited until its deadline and nothing has come from the
// service meanwhile: its process stands still, or the network loses all. Such a service does not answer
// on a new connection either, so that calls go to the others until it does.
type watch struct {
	credentials.TransportCredentials
	began time.Time

	mu    sync.Mutex
	conns map[string]*watchedConn // local and remote address → connection
}

func newWatch(creds credentials.TransportCredentials) *watch {
	return &watch{TransportCredentials: creds, began: time.Now(), conns: map[string]*watchedConn{}}
}

// watchedConn is a connection to a service.
type watchedConn struct {
	net.Conn
	watch *watch
	heard atomic.Int64 // when something came last, since watch.began
}

func key(local, remote net.Addr) string { return local.String() + " " + remote.String() }

// ClientHandshake is [credentials.TransportCredentials.ClientHandshake]. Its connection is watched.
func (w *watch) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return conn, info, err
	}
	watched := &watchedConn{Conn: conn, watch: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[key(conn.LocalAddr(), conn.RemoteAddr())] = watched
	return watched, info, nil
}

// Clone is [credentials.TransportCredentials.Clone].
func (w *watch) Clone() credentials.TransportCredentials { return w }

// Read is [net.Conn.Read].
func (c *watchedConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	c.heard.Store(int64(time.Since(c.watch.began)))
	return n, err
}

// Close is [net.Conn.Close].
func (c *watchedConn) Close() error {
	name := key(c.LocalAddr(), c.RemoteAddr())
	c.watch.mu.Lock()
	if c.watch.conns[name] == c {
		delete(c.watch.conns, name)
	}
	c.watch.mu.Unlock()
	return c.Conn.Close()
}

// intercept makes a call.
func (w *watch) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var at peer.Peer
	began := time.Since(w.began)
	err := invoke(ctx, method, req, reply, conn, append(opts, grpc.Peer(&at))...)
	waited := time.Since(w.began) - began
	if status.Code(err) == codes.DeadlineExceeded && waited >= silence && at.LocalAddr != nil && at.Addr != nil {
		w.mu.Lock()
		c := w.conns[key(at.LocalAddr, at.Addr)]
		w.mu.Unlock()
		if c != nil && c.heard.Load() < int64(began) {
			c.Close()
		}
	}
	return err
}
