package urlserver

import (
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	refusalLasts = 30 * time.Second // for which one of many who are refused waits for the end of its connection
	refusedFree  = 16               // so many in that time are cut at once
)

// lobby ends connections that were refused. A few are cut at once; of a flood the others stay open for a while, unread: a spider
// that tries again as soon as it is cut, as one with a wrong token may, costs a handshake in that time and no more. They take
// the place of nobody. Safe for concurrent use; the zero value is ready.
type lobby struct {
	mu     sync.Mutex // guards all below
	closed bool
	kept   []*refused             // oldest first
	cut    [refusedFree]time.Time // when connections were cut at once
	oldest int                    // of cut
}

type refused struct {
	conn  net.Conn
	timer *time.Timer
}

// keep closes conn now, in refusalLasts, or when room is made. What TLS holds of one that stays is let go.
func (l *lobby) keep(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.isFewLocked(time.Now()) {
		conn.Close()
		return
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	r := &refused{conn: conn}
	r.timer = time.AfterFunc(refusalLasts, func() { l.end(r) })
	l.kept = append(l.kept, r)
}

// isFewLocked reports whether so few were cut at once lately that another may be, and counts it.
func (l *lobby) isFewLocked(now time.Time) bool {
	if now.Sub(l.cut[l.oldest]) < refusalLasts {
		return false
	}
	l.cut[l.oldest] = now
	l.oldest = (l.oldest + 1) % refusedFree
	return true
}

func (l *lobby) end(r *refused) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.kept, r); i >= 0 {
		l.endLocked(i)
	}
}

func (l *lobby) endLocked(i int) {
	l.kept[i].timer.Stop()
	l.kept[i].conn.Close()
	l.kept = slices.Delete(l.kept, i, i+1)
}

// size is how many connections are kept.
func (l *lobby) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.kept)
}

// makeRoom closes the connection that has been kept longest; false: none is.
func (l *lobby) makeRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == 0 {
		return false
	}
	l.endLocked(0)
	return true
}

// close closes all, and those that come later.
func (l *lobby) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for len(l.kept) > 0 {
		l.endLocked(len(l.kept) - 1)
	}
}
