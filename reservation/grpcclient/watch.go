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

// silence is the least time without a byte from a service after which its connection may be closed, and the time
// that the service then has to say something on a new one.
const silence = 250 * time.Millisecond

// watch closes a connection if a call on it has waited until its deadline, nothing has come from the service
// meanwhile, and nothing comes on a new connection either, on which a service speaks first: its process stands
// still, or the network loses all. So calls go to the others until it speaks. The connection to a service that
// is only slow stays, because other calls may wait on it.
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
	watch     *watch
	authority string
	heard     atomic.Int64 // when something came last, since watch.began
	asked     atomic.Bool  // whether closeIfDead is under way
}

func key(local, remote net.Addr) string { return local.String() + " " + remote.String() }

// ClientHandshake is [credentials.TransportCredentials.ClientHandshake]. Its connection is watched.
func (w *watch) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return conn, info, err
	}
	watched := &watchedConn{Conn: conn, watch: w, authority: authority}
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

// closeIfDead closes the connection if nothing has come since a moment, and nothing comes on a new one.
func (c *watchedConn) closeIfDead(since int64) {
	defer c.asked.Store(false)
	if !c.speaks() && c.heard.Load() < since {
		c.Close()
	}
}

// speaks reports whether the service says something on a new connection.
func (c *watchedConn) speaks() bool {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.RemoteAddr().String())
	if err != nil {
		return false
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(silence)); err != nil {
		return false
	}
	conn, _, err := c.watch.TransportCredentials.ClientHandshake(ctx, c.authority, raw)
	if err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
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
		if c != nil && c.heard.Load() < int64(began) && c.asked.CompareAndSwap(false, true) {
			go c.closeIfDead(int64(began))
		}
	}
	return err
}
