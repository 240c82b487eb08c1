package chaos

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is a TCP proxy whose connections can be cut and slowed down.
type proxy struct {
	to     string
	delay  atomic.Int64      // ns that data is delayed
	onLine func(line []byte) // is called with each line from the server; nil: none

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// startProxy forwards connections to addr to another address until the test ends.
func startProxy(t *testing.T, addr, to string, onLine func(line []byte)) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	w := &proxy{to: to, onLine: onLine, conns: map[net.Conn]bool{}}
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

func (w *proxy) serve(near net.Conn) {
	defer near.Close()
	far, err := net.DialTimeout("tcp", w.to, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	w.keep(near, true)
	defer w.keep(near, false)
	var back sync.WaitGroup
	back.Go(func() { w.pass(near, far, w.onLine) })
	w.pass(far, near, nil)
	back.Wait()
}

func (w *proxy) keep(conn net.Conn, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.conns, conn); open {
		w.conns[conn] = true
	}
}

// pass copies data until either end closes, and then closes both.
func (w *proxy) pass(to, from net.Conn, onLine func(line []byte)) {
	defer to.Close()
	defer from.Close()
	buf, rest := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := from.Read(buf)
		if d := time.Duration(w.delay.Load()); d > 0 {
			time.Sleep(d)
		}
		if onLine != nil {
			rest = append(rest, buf[:n]...)
			for i := bytes.IndexByte(rest, '\n'); i >= 0; i = bytes.IndexByte(rest, '\n') {
				onLine(rest[:i])
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
func (w *proxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}
