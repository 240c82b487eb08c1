package netguardtest

import (
	"net"
	"sync"
	"sync/atomic"
)

// Pipes is a listener without a network.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns a listener. Inside a synctest bubble it is one of the bubble.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept is [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is [net.Listener].
func (p *Pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

// Addr is [net.Listener].
func (p *Pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// Dial connects to the listener. It returns when the connection has been accepted.
func (p *Pipes) Dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// Reads is a listener that counts the reads from its connections, and their bytes.
type Reads struct {
	net.Listener
	Times, Bytes atomic.Int64
}

// Accept is [net.Listener].
func (r *Reads) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	return &readConn{conn, r}, err
}

type readConn struct {
	net.Conn
	by *Reads
}

func (c *readConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.Times.Add(1)
	c.by.Bytes.Add(int64(n))
	return n, err
}
