package access

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

const (
	maxOpen        = 4096      // streams of all connections together
	strangerOpen   = 4         // streams of a connection that has shown no token yet
	strangerUnread = 256 << 10 // bytes of unfinished messages of such a connection: what it sends before it knows it is refused
	connUnread     = 4 << 20   // bytes of unfinished messages of a connection, beside one message of the largest size
	allUnread      = 64 << 20  // of all connections together, or twice the largest message where that is more
	frameCost      = 128       // bytes of memory that a DATA frame takes beside its own
)

var (
	errConnUnread = errors.New("the connection has too many bytes of unfinished messages")
	errConnCut    = errors.New("the connection was cut: all connections together have too many bytes of unfinished messages, and it has most")
)

// meter bounds the memory that gRPC clients can take with messages that they begin and do not finish. gRPC bounds the size
// of one message, but extends the flow-control window of each stream to the size that its message announces, whatever the
// other streams of the connection have. The meter therefore follows the HTTP/2 frames of each connection, above TLS, and
// counts the bytes of unfinished messages. A connection that has more than connUnread and one message of the largest size is
// cut. When all together have more than allows, the connection with most is cut. Finished messages that wait for a handler
// are bounded by the window of a stream and by maxOpen.
type meter struct {
	conn, all int64 // limits in bytes
	guarded   bool  // who has shown no token has strangerUnread
	held      atomic.Int64
	open      atomic.Int64 // streams
	mu        sync.Mutex
	conns     map[*metered]struct{}
}

func newMeter(maxMessage int, guarded bool) *meter {
	return &meter{
		conn: int64(maxMessage) + connUnread, all: max(allUnread, 2*(int64(maxMessage)+connUnread)),
		guarded: guarded, conns: map[*metered]struct{}{},
	}
}

// meteredTLS are the server's credentials, with a meter on what comes out of them.
type meteredTLS struct {
	credentials.TransportCredentials
	meter *meter
}

func (m *meter) credentials(of credentials.TransportCredentials) credentials.TransportCredentials {
	if of == nil {
		of = insecure.NewCredentials()
	}
	return meteredTLS{of, m}
}

// ServerHandshake is [credentials.TransportCredentials].
func (c meteredTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	return c.meter.follow(conn), info, nil
}

// Clone is [credentials.TransportCredentials].
func (c meteredTLS) Clone() credentials.TransportCredentials {
	return meteredTLS{c.TransportCredentials.Clone(), c.meter}
}

func (m *meter) follow(conn net.Conn) *metered {
	c := &metered{Conn: conn, meter: m, streams: map[uint32]*stream{}}
	c.in.skip = len(preface)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns[c] = struct{}{}
	return c
}

// cutLargest cuts the connection with most bytes of unfinished messages, first of those that have shown no token.
func (m *meter) cutLargest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var most *metered
	for c := range m.conns {
		if most == nil || c.isBefore(most) {
			most = c
		}
	}
	if most != nil && m.held.Load() > m.all {
		delete(m.conns, most)
		most.cut.Store(true)
		most.release()
		most.Conn.Close()
	}
}

func (c *metered) isBefore(d *metered) bool {
	if strange, other := c.limit() < c.meter.conn && c.held.Load() > 0, d.limit() < d.meter.conn && d.held.Load() > 0; strange != other {
		return strange
	}
	return c.held.Load() > d.held.Load()
}

// metered is a connection whose frames are followed. One goroutine reads, one writes.
type metered struct {
	net.Conn
	meter  *meter
	in     frames // the reader's
	out    frames // the writer's
	last   uint32 // the reader's: the newest stream
	held   atomic.Int64
	cut    atomic.Bool
	checks atomic.Int32 // health checks under way without the token

	mu      sync.Mutex
	ended   bool
	streams map[uint32]*stream // those that are open
}

// stream is the message that a stream of a client is in.
type stream struct {
	prefix [5]byte // compressed or not, and the message's length
	begun  int     // bytes of the prefix that have come
	needs  int64   // bytes of the message that are yet to come
	held   int64   // what the unfinished message is charged
}

// meteredAddr is an address by which the guard finds the connection.
type meteredAddr struct {
	net.Addr
	of *metered
}

// RemoteAddr is [net.Conn].
func (c *metered) RemoteAddr() net.Addr { return meteredAddr{c.Conn.RemoteAddr(), c} }

// meteredOf is the connection that a call came by; nil: it is not metered.
func meteredOf(ctx context.Context) *metered {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	a, _ := p.Addr.(meteredAddr)
	return a.of
}

// Read is [net.Conn]. It fails when the connection has too much of unfinished messages.
func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.follow(p[:n], c.received)
	switch limit := c.limit(); {
	case c.cut.Load():
		return 0, errConnCut
	case c.held.Load() > limit:
		return 0, errConnUnread
	}
	if c.meter.held.Load() > c.meter.all {
		c.meter.cutLargest()
	}
	return n, err
}

func (c *metered) limit() int64 {
	if c.meter.guarded && !c.trusted() {
		return strangerUnread
	}
	return c.meter.conn
}

// trusted tells whether the connection has shown the token.
func (c *metered) trusted() bool {
	s, ok := c.Conn.RemoteAddr().(strangersAddr)
	return !ok || s.of.known.Load()
}

// Write is [net.Conn].
func (c *metered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.out.follow(p[:n], c.sent)
	return n, err
}

// Close is [net.Conn].
func (c *metered) Close() error {
	c.release()
	c.meter.mu.Lock()
	delete(c.meter.conns, c)
	c.meter.mu.Unlock()
	return c.Conn.Close()
}

// release ends all streams, and any to come.
func (c *metered) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for id := range c.streams {
		c.end(id)
	}
}

// end is called with the lock held.
func (c *metered) end(id uint32) {
	if s := c.streams[id]; s != nil {
		c.charge(s, -s.held)
		delete(c.streams, id)
		c.meter.open.Add(-1)
	}
}

func (c *metered) charge(s *stream, bytes int64) {
	s.held += bytes
	c.held.Add(bytes)
	c.meter.held.Add(bytes)
}

// sent follows a frame of the server: what ends a stream ends what it holds.
func (c *metered) sent(f *frames, part []byte) {
	if part == nil && (f.kind == frameReset || (f.kind == frameHeaders || f.kind == frameData) && f.flags&flagEnd != 0) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(f.stream)
	}
}

// received follows a frame of the client, at its header (part is nil) and with each part of its payload.
func (c *metered) received(f *frames, part []byte) {
	if f.kind != frameData && f.kind != frameHeaders && f.kind != frameReset {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.stream]
	switch {
	case c.ended:
	case f.kind == frameHeaders && part == nil && f.stream > c.last:
		c.last = f.stream
		c.streams[f.stream] = &stream{}
		c.meter.open.Add(1)
	case f.kind == frameReset && part == nil:
		c.end(f.stream)
	case f.kind == frameData && s != nil && part == nil && f.left > 0:
		c.charge(s, frameCost+int64(f.left))
	case f.kind == frameData && s != nil && part != nil:
		c.take(s, f, part)
	}
}

// take follows the messages of a stream. At the end of a frame that ends with a message nothing is held; where the frame ends
// within one, what is held is all since the frame that this message began in.
func (c *metered) take(s *stream, f *frames, part []byte) {
	for len(part) > 0 {
		if s.begun < len(s.prefix) {
			n := copy(s.prefix[s.begun:], part)
			s.begun += n
			part = part[n:]
			if s.begun < len(s.prefix) {
				break
			}
			s.needs = int64(binary.BigEndian.Uint32(s.prefix[1:]))
		}
		n := min(s.needs, int64(len(part)))
		s.needs -= n
		part = part[n:]
		if s.needs == 0 {
			s.begun = 0
			c.charge(s, min(s.held, frameCost+int64(f.size))-s.held)
		}
	}
	if f.left == 0 && s.begun == 0 {
		c.charge(s, -s.held)
	}
}
