package chaos

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a connection's way, which can be cut and made slow.
type wire struct {
	to    string
	delay atomic.Int64      // ns, of whatever passes
	tap   func(line []byte) // sees each line that comes back; nil: nobody does

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// layWire has a listener at addr pass on to another address until the test ends.
func layWire(t *testing.T, addr, to string, tap func(line []byte)) *wire {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{to: to, tap: tap, conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); w.cut(); all.Wait() })
	return w
}

func (w *wire) serve(near net.Conn) {
	defer near.Close()
	far, err := net.DialTimeout("tcp", w.to, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	w.keep(near, true)
	defer w.keep(near, false)
	var back sync.WaitGroup
	back.Go(func() { w.pass(near, far, w.tap) })
	w.pass(far, near, nil)
	back.Wait()
}

func (w *wire) keep(conn net.Conn, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.conns, conn); open {
		w.conns[conn] = true
	}
}

// pass copies until either end closes, and closes both then.
func (w *wire) pass(to, from net.Conn, tap func(line []byte)) {
	defer to.Close()
	defer from.Close()
	buf, rest := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := from.Read(buf)
		if d := time.Duration(w.delay.Load()); d > 0 {
			time.Sleep(d)
		}
		if tap != nil {
			rest = append(rest, buf[:n]...)
			for i := bytes.IndexByte(rest, '\n'); i >= 0; i = bytes.IndexByte(rest, '\n') {
				tap(rest[:i])
				rest = rest[i+1:]
			}
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}
