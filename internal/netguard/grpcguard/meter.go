package grpcguard

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"urlserver/internal/netguard"
)

const (
	maxOpen             = 4096 // open streams of all connections together
	unauthenticatedOpen = 4    // health checks under way on an unauthenticated connection

	// Limits of unfinished messages in bytes. An unauthenticated client may send some before the
	// refusal of its call arrives. A connection may have connUnread and one message of the largest
	// size; all together may have allUnread, or twice the limit of one connection if that is more.
	unauthenticatedUnread = 256 << 10
	connUnread            = 4 << 20
	allUnread             = 64 << 20

	frameCost = 128 // bytes of memory that a DATA frame takes in addition to its payload
)

var (
	errConnUnread = errors.New("the connection has too many bytes of unfinished messages")
	errConnCut    = errors.New("the connection was cut: all connections together have too many bytes" +
		" of unfinished messages, and it has most")
)

// meter bounds the memory that unfinished messages of gRPC clients take. gRPC bounds the size of
// one message, but it extends the flow-control window of each stream to the size that its message
// announces, regardless of the connection's other streams. The meter therefore parses the HTTP/2
// frames of each connection, above TLS, and counts the bytes of unfinished messages. It cuts a
// connection that exceeds its own limit. When all together exceed their limit, it cuts the
// connection with the most bytes. The stream window and maxOpen bound the finished messages that
// wait for a handler.
type meter struct {
	conn, all int64        // limits in bytes
	guarded   bool         // an unauthenticated connection has the limit unauthenticatedUnread
	unread    atomic.Int64 // bytes of unfinished messages
	open      atomic.Int64 // streams
	mu        sync.Mutex
	conns     map[*meteredConn]struct{}
}

func newMeter(maxMessage int, guarded bool) *meter {
	return &meter{
		conn: int64(maxMessage) + connUnread, all: max(allUnread, 2*(int64(maxMessage)+connUnread)),
		guarded: guarded, conns: map[*meteredConn]struct{}{},
	}
}

// meteredTLS is the server's credentials. It meters the connections that they accept.
type meteredTLS struct {
	credentials.TransportCredentials
	meter *meter
}

func (m *meter) credentials(of credentials.TransportCredentials) credentials.TransportCredentials {
	return meteredTLS{of, m}
}

// ServerHandshake is [credentials.TransportCredentials].
func (c meteredTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	metered := c.meter.follow(conn)
	_, metered.allowed = info.(allowedInfo)
	return metered, info, nil
}

// Clone is [credentials.TransportCredentials].
func (c meteredTLS) Clone() credentials.TransportCredentials {
	return meteredTLS{c.TransportCredentials.Clone(), c.meter}
}

func (m *meter) follow(conn net.Conn) *meteredConn {
	c := &meteredConn{Conn: conn, meter: m, streams: map[uint32]*stream{}}
	c.in.skip = len(preface)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns[c] = struct{}{}
	return c
}

// cutLargest cuts the connection with the most bytes of unfinished messages: an unauthenticated
// one, if one has any.
func (m *meter) cutLargest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var most *meteredConn
	for c := range m.conns {
		if most == nil || c.cutBefore(most) {
			most = c
		}
	}
	if most != nil && m.unread.Load() > m.all {
		delete(m.conns, most)
		most.cut.Store(true)
		most.release()
		most.Conn.Close()
	}
}

func (c *meteredConn) cutBefore(d *meteredConn) bool {
	if first, second := c.cutFirst(), d.cutFirst(); first != second {
		return first
	}
	return c.unread.Load() > d.unread.Load()
}

// cutFirst reports whether the connection is unauthenticated and has an unfinished message.
func (c *meteredConn) cutFirst() bool { return c.limit() < c.meter.conn && c.unread.Load() > 0 }

// meteredConn is a connection whose frames the meter parses. One goroutine reads, one writes.
type meteredConn struct {
	net.Conn
	meter  *meter
	in     frames       // used by the reader
	out    frames       // used by the writer
	last   uint32       // the newest stream; used by the reader
	unread atomic.Int64 // bytes of unfinished messages
	cut    atomic.Bool
	checks atomic.Int32 // unauthenticated health checks under way
	// whether the client needs no token, because its network is one of Server.AllowFrom
	allowed bool

	mu      sync.Mutex // guards the fields below
	ended   bool
	streams map[uint32]*stream // open ones
}

// stream is the state of a client's stream: its current message.
type stream struct {
	prefix    [5]byte // the compression flag and the message's length
	prefixLen int     // bytes of the prefix received
	rest      int64   // bytes of the message still to come
	unread    int64   // bytes that the unfinished message counts for
}

// meteredAddr is the address by which the guard finds the connection.
type meteredAddr struct {
	net.Addr
	of *meteredConn
}

// RemoteAddr is [net.Conn].
func (c *meteredConn) RemoteAddr() net.Addr { return meteredAddr{c.Conn.RemoteAddr(), c} }

// meteredOf returns the connection of a call, or nil if it is not metered.
func meteredOf(ctx context.Context) *meteredConn {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, _ := p.Addr.(meteredAddr)
	return a.of
}

// Read is [net.Conn]. It fails if the connection has too many bytes of unfinished messages.
func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.follow(p[:n], c.received)
	switch limit := c.limit(); {
	case c.cut.Load():
		return 0, errConnCut
	case c.unread.Load() > limit:
		return 0, errConnUnread
	}
	if c.meter.unread.Load() > c.meter.all {
		c.meter.cutLargest()
	}
	return n, err
}

func (c *meteredConn) limit() int64 {
	if c.meter.guarded && !c.authenticated() {
		return unauthenticatedUnread
	}
	return c.meter.conn
}

// authenticated reports whether a call of the connection has carried the token.
func (c *meteredConn) authenticated() bool { return netguard.IsAuthenticated(c.Conn.RemoteAddr()) }

// Write is [net.Conn].
func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.follow(p[:n], c.sent)
	return n, err
}

// Close is [net.Conn].
func (c *meteredConn) Close() error {
	c.release()
	c.meter.mu.Lock()
	delete(c.meter.conns, c)
	c.meter.mu.Unlock()
	return c.Conn.Close()
}

// release ends all streams and rejects new ones.
func (c *meteredConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for id := range c.streams {
		c.endLocked(id)
	}
}

// endLocked ends a stream, if it is open.
func (c *meteredConn) endLocked(id uint32) {
	if s := c.streams[id]; s != nil {
		c.charge(s, -s.unread)
		delete(c.streams, id)
		c.meter.open.Add(-1)
	}
}

func (c *meteredConn) charge(s *stream, bytes int64) {
	if bytes == 0 {
		return
	}
	s.unread += bytes
	c.unread.Add(bytes)
	c.meter.unread.Add(bytes)
}

// sent sees the frames of the server. One that ends a stream ends its unfinished message.
func (c *meteredConn) sent(f *frames, _ []byte) {
	ends := f.kind == frameReset || (f.kind == frameHeaders || f.kind == frameData) && f.flags&flagEnd != 0
	if f.first && ends {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.endLocked(f.stream)
	}
}

// received sees the frames of the client, each as [frames.follow] passes it on.
func (c *meteredConn) received(f *frames, part []byte) {
	if f.kind != frameData && f.kind != frameHeaders && f.kind != frameReset {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.stream]
	switch {
	case c.ended:
	case f.kind == frameHeaders && f.first && f.stream > c.last:
		c.last = f.stream
		c.streams[f.stream] = &stream{}
		c.meter.open.Add(1)
	case f.kind == frameReset && f.first:
		c.endLocked(f.stream)
	case f.kind == frameData && s != nil:
		c.data(s, f, part)
	}
}

// data counts the bytes of a DATA frame.
func (c *meteredConn) data(s *stream, f *frames, part []byte) {
	if f.first {
		if f.left == 0 && s.prefixLen == 0 && s.unread == 0 && isWhole(part) {
			return // nothing is unfinished, before the frame and after it
		}
		if size := f.left + len(part); size > 0 {
			c.charge(s, frameCost+int64(size))
		}
	}
	if part != nil {
		c.take(s, f, part)
	}
}

// isWhole reports whether a text is one or more messages with nothing behind them.
func isWhole(text []byte) bool {
	const prefix = len(stream{}.prefix)
	for len(text) >= prefix {
		n := uint64(binary.BigEndian.Uint32(text[1:]))
		if n > uint64(len(text)-prefix) {
			return false
		}
		if text = text[prefix+int(n):]; len(text) == 0 {
			return true
		}
	}
	return false
}

// take parses the messages of a stream. A message counts from the beginning of the frame in which
// it begins. At the end of a frame that ends with a message the stream counts for nothing.
func (c *meteredConn) take(s *stream, f *frames, part []byte) {
	for len(part) > 0 {
		if s.prefixLen < len(s.prefix) {
			n := copy(s.prefix[s.prefixLen:], part)
			s.prefixLen += n
			part = part[n:]
			if s.prefixLen < len(s.prefix) {
				break
			}
			s.rest = int64(binary.BigEndian.Uint32(s.prefix[1:]))
		}
		n := min(s.rest, int64(len(part)))
		s.rest -= n
		part = part[n:]
		if s.rest == 0 {
			s.prefixLen = 0
			c.charge(s, min(s.unread, frameCost+int64(f.size))-s.unread)
		}
	}
	if f.left == 0 && s.prefixLen == 0 {
		c.charge(s, -s.unread)
	}
}
