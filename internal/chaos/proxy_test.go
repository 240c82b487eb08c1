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
	to    string
	delay atomic.Int64 // ns that data is delayed
	// Are called with each line from the server, before it goes on, and from a client, when it has
	// gone on; nil: they are not.
	onLine, onAnswer func(line []byte)

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

// startProxy forwards connections to addr to another address until the test ends.
func startProxy(t *testing.T, addr, to string, onLine, onAnswer func(line []byte)) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	w := &proxy{to: to, onLine: onLine, onAnswer: onAnswer, conns: map[net.Conn]bool{}}
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
	back.Go(func() { w.pass(near, far, w.onLine, nil) })
	w.pass(far, near, nil, w.onAnswer)
	back.Wait()
}

func (w *proxy) keep(conn net.Conn, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.conns, conn); open {
		w.conns[conn] = true
	}
}

// pass copies data until either end closes, and then closes both. It calls before and after, which
// may be nil, with each line.
func (w *proxy) pass(to, from net.Conn, before, after func(line []byte)) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	var in, out []byte
	for {
		n, err := from.Read(buf)
		if d := time.Duration(w.delay.Load()); d > 0 {
			time.Sleep(d)
		}
		in = eachLine(append(in, buf[:n]...), before)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		out = eachLine(append(out, buf[:n]...), after)
	}
}

// eachLine calls do with each complete line, and returns the rest.
func eachLine(data []byte, do func(line []byte)) (rest []byte) {
	if do == nil {
		return nil
	}
	for i := bytes.IndexByte(data, '\n'); i >= 0; i = bytes.IndexByte(data, '\n') {
		do(data[:i])
		data = data[i+1:]
	}
	return data
}

// cut ends all connections.
func (w *proxy) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		conn.Close()
	}
}
