package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Request numbers of Kafka's protocol.
const (
	produceRequest = 0
	commitRequest  = 8
)

// kafkaProxy is a proxy between a daemon and its broker. It can hold back requests.
type kafkaProxy struct {
	l       net.Listener
	broker  string
	was, is []byte // the broker's address as it reports it, and the proxy's

	mu   sync.Mutex // guards all below
	kind int16      // kind of the requests that are held back; negative: none
	seen chan struct{}
}

func newKafkaWire(t *testing.T, broker string) *kafkaProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &kafkaProxy{l: l, broker: broker, was: hostPort(t, broker), is: hostPort(t, l.Addr().String()), kind: -1}
	var working sync.WaitGroup
	working.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			working.Go(func() { w.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		working.Wait() // daemons end with the test's context, which has ended
	})
	return w
}

func (w *kafkaProxy) addr() string { return w.l.Addr().String() }

// keep holds back requests of a kind from now on; seen is closed when the first one arrives.
func (w *kafkaProxy) keep(kind int16) (seen <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind, w.seen = kind, make(chan struct{})
	return w.seen
}

// open lets all later requests pass.
func (w *kafkaProxy) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind = -1
}

// serve forwards a connection, message by message, until either side closes it.
func (w *kafkaProxy) serve(down net.Conn) {
	defer down.Close()
	up, err := net.Dial("tcp", w.broker)
	if err != nil {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		defer down.Close()
		w.forward(down, up, func([]byte) bool { return true })
	})
	w.forward(up, down, w.passes)
	up.Close()
	answers.Wait()
}

// forward copies messages that pass. It replaces the broker's address by the proxy's.
func (w *kafkaProxy) forward(to io.Writer, from io.Reader, passes func([]byte) bool) {
	var size [4]byte
	for {
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		if !passes(message) {
			continue
		}
		message = bytes.ReplaceAll(message, w.was, w.is)
		if _, err := to.Write(append(size[:], message...)); err != nil {
			return
		}
	}
}

// passes reports whether a request is not held back. It begins with its kind.
func (w *kafkaProxy) passes(request []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(request) < 2 || w.kind < 0 || int16(binary.BigEndian.Uint16(request)) != w.kind {
		return true
	}
	if w.seen != nil {
		close(w.seen)
		w.seen = nil
	}
	return false
}

// hostPort returns an address as brokers encode it: the host's text, and the port in four bytes.
func hostPort(t *testing.T, addr string) []byte {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return binary.BigEndian.AppendUint32([]byte(host), uint32(port))
}
