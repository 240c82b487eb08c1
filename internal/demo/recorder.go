package demo

import (
	"bytes"
	"net"

	"urlserver/protocol"
)

// lineRecorder is the listener that the demo's spider connects to. It reports the URLs that the
// daemon sends, just before they are written.
type lineRecorder struct {
	net.Listener
	sent func(url []byte)
}

// Accept implements [net.Listener].
func (t lineRecorder) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: conn, sent: t.sent}, nil
}

// recordedConn is the daemon's end of a connection. One goroutine at a time writes to it.
type recordedConn struct {
	net.Conn
	sent func(url []byte)
	rest []byte // a line without its end, from the last Write
}

// Write implements [net.Conn].
func (c *recordedConn) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, rest, whole := bytes.Cut(c.rest, []byte("\n"))
		if !whole {
			break
		}
		if f, _, err := protocol.ParseFetchWith(line); err == nil {
			c.sent(f.URL)
		}
		c.rest = rest
	}
	return c.Conn.Write(p)
}
