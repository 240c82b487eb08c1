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

// socketUses is after how many tries a UDP socket is replaced by one with another random port.
// Opening and closing one costs more than a query does; a port for a few dozen queries gives a
// forger, who has the ID and the case to guess as well, next to nothing.
const socketUses = 32

// socketSet holds the open sockets, so that Close can interrupt who reads from one. The zero
// value is ready.
type socketSet struct {
	mu     sync.Mutex // guards both
	open   map[net.Conn]struct{}
	closed bool
}

// dial opens a socket to s, connected, so that the kernel picks a random source port and drops
// what comes from elsewhere. Give it back to hangUp.
func (set *socketSet) dial(ctx context.Context, network string, s *server, timeout time.Duration) (net.Conn, error) {
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

// use makes p a socket to s: the one from last time, or a fresh one.
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

// drop closes the socket, for one that late or forged answers may still come to.
func (p *port) drop(r *Resolver) {
	if p.conn != nil {
		r.sockets.hangUp(p.conn)
	}
	p.conn = nil
}

// overTCP asks q of s over TCP (RFC 7766) and returns the answer to it.
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

// timedOut reports whether a deadline has passed, also while dialling: that takes no time over UDP
// unless the process is stalled.
func timedOut(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}
