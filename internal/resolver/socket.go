package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// socketUses is the number of tries after which a UDP socket is replaced by one with another random
// port. Opening and closing a socket costs more than a query. An attacker who knows the port for a
// few dozen queries still has to guess ID and case.
const socketUses = 32

// socketSet holds the open sockets, so that Close can interrupt reads. The zero value is ready.
type socketSet struct {
	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

// dial opens a connected socket to s. The kernel chooses a random source port and drops datagrams
// from other addresses. hangUp closes the socket.
func (set *socketSet) dial(ctx context.Context, network string, s *server,
	timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, network, s.addr.String())
	if err != nil {
		return nil, err
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed {
		conn.Close()
		return nil, ErrClosed
	}
	if set.open == nil {
		set.open = make(map[net.Conn]struct{})
	}
	set.open[conn] = struct{}{}
	return conn, nil
}

func (set *socketSet) hangUp(conn net.Conn) {
	set.mu.Lock()
	delete(set.open, conn)
	set.mu.Unlock()
	conn.Close()
}

// close closes all sockets and prevents new ones.
func (set *socketSet) close() {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.closed = true
	for conn := range set.open {
		conn.Close()
	}
}

// port is a worker's UDP socket. The zero value has none.
type port struct {
	conn net.Conn
	to   *server
	uses int
}

// use makes p a socket to s: the present one, or a new one.
func (p *port) use(r *Resolver, s *server) (err error) {
	if p.conn != nil && p.to == s && p.uses < socketUses {
		p.uses++
		return nil
	}
	p.drop(r)
	p.to, p.uses = s, 1
	p.conn, err = r.sockets.dial(r.alive, "udp", s, r.cfg.Timeout)
	return err
}

// drop closes a socket at which late or forged answers may still arrive.
func (p *port) drop(r *Resolver) {
	if p.conn != nil {
		r.sockets.hangUp(p.conn)
	}
	p.conn = nil
}

// overTCP sends q to s over TCP (RFC 7766) and returns the answer.
func (r *Resolver) overTCP(s *server, q query) ([]byte, error) {
	deadline := time.Now().Add(r.cfg.Timeout)
	conn, err := r.sockets.dial(r.alive, "tcp", s, r.cfg.Timeout)
	if err != nil {
		return nil, fmt.Errorf("TCP: %w", err)
	}
	defer r.sockets.hangUp(conn)
	conn.SetDeadline(deadline)
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(q.wire)))
	if _, err := conn.Write(append(framed, q.wire...)); err != nil {
		return nil, fmt.Errorf("TCP: %w", err)
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, fmt.Errorf("TCP: %w", err)
	}
	raw := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, raw); err != nil {
		return nil, fmt.Errorf("TCP: %w", err)
	}
	if !q.answeredBy(raw) || cut(raw) {
		return nil, errors.New("TCP: it answered something else")
	}
	return raw, nil
}

// timedOut reports whether a deadline has passed, also while dialling. Over UDP dialling takes no
// time, unless the process is stalled.
func timedOut(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}
