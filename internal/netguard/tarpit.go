package netguard

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	TarpitTime = 30 * time.Second // for which a Tarpit keeps a refused connection open
	TarpitFree = 16               // refused connections that a Tarpit closes at once in each TarpitTime
)

// Tarpit closes refused connections late. It closes a few at once. During a flood it keeps the
// others open and unread for TarpitTime: a client that reconnects as soon as it is refused, as one
// with a wrong token may, then costs one handshake in that time. The zero value is ready to use. A
// Tarpit is safe for concurrent use.
type Tarpit struct {
	mu       sync.Mutex // guards all below
	closed   bool
	refused  []*refusedConn        // oldest first
	freed    [TarpitFree]time.Time // ring: when connections were closed at once
	nextFree int                   // the oldest of freed
}

type refusedConn struct {
	conn  net.Conn
	timer *time.Timer
}

// Add closes conn at once, in TarpitTime, or when MakeRoom chooses it. It keeps only the TCP
// connection of one with TLS, which frees the memory of TLS.
func (t *Tarpit) Add(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.takeFreeLocked(time.Now()) {
		conn.Close()
		return
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	r := &refusedConn{conn: conn}
	r.timer = time.AfterFunc(TarpitTime, func() { t.end(r) })
	t.refused = append(t.refused, r)
}

// takeFreeLocked reports whether another connection may be closed at once, and counts it.
func (t *Tarpit) takeFreeLocked(now time.Time) bool {
	if now.Sub(t.freed[t.nextFree]) < TarpitTime {
		return false
	}
	t.freed[t.nextFree] = now
	t.nextFree = (t.nextFree + 1) % TarpitFree
	return true
}

func (t *Tarpit) end(r *refusedConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.refused, r); i >= 0 {
		t.endLocked(i)
	}
}

func (t *Tarpit) endLocked(i int) {
	t.refused[i].timer.Stop()
	t.refused[i].conn.Close()
	t.refused = slices.Delete(t.refused, i, i+1)
}

// Len is the number of connections that it keeps open.
func (t *Tarpit) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.refused)
}

// MakeRoom closes the oldest connection and reports whether there was one.
func (t *Tarpit) MakeRoom() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.refused) == 0 {
		return false
	}
	t.endLocked(0)
	return true
}

// Close closes all connections. Connections added later are closed at once.
func (t *Tarpit) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for len(t.refused) > 0 {
		t.endLocked(len(t.refused) - 1)
	}
}
