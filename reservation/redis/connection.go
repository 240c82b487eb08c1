package redis

import (
	"context"
	"crypto/tls"
	"net"
)

// connection tells its store when it ends. The next command goes through another connection, which
// may lead to another Redis.
type connection struct {
	net.Conn
	s *Store
}

// dialed is [rueidis.ClientOption.DialCtxFn].
func (s *Store) dialed(ctx context.Context, addr string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	dial := d.DialContext
	if t != nil {
		dial = (&tls.Dialer{NetDialer: d, Config: t}).DialContext
	}
	c, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	s.changes.Add(1)
	return &connection{c, s}, nil
}

// Read is [net.Conn.Read]. The client of Redis reads all the time while it has concurrent callers, so it
// learns at once that the connection has ended.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.s.changes.Add(1)
	}
	return n, err
}

// Close is [net.Conn.Close].
func (c *connection) Close() error {
	c.s.changes.Add(1)
	return c.Conn.Close()
}
