package demo

import (
	"bytes"
	"net"

	"urlserver/protocol"
)

// tap is the listener that the demo's spider dials. It tells which URLs the daemon sends, just
// before they leave.
type tap struct {
	net.Listener
	sent func(url []byte)
}

// Accept implements [net.Listener].
func (t tap) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: conn, sent: t.sent}, nil
}

// tappedConn is the daemon's end of a connection. One goroutine at a time writes to it.
type tappedConn struct {
	net.Conn
	sent func(url []byte)
	rest []byte // of the last Write: a line without its end
}

// Write implements [net.Conn].
func (c *tappedConn) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			break
		}
		if f, err := protocol.ParseFetch(line); err == nil {
			c.sent(f.URL)
		}
		c.rest = rest
	}
	return c.Conn.Write(p)
}
