// Package netguardtest has a gRPC client that makes a server use as much memory as it can.
package netguardtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Hoarder is a connection whose calls send messages except the last byte of each. Use Hoard, then
// Close.
type Hoarder struct {
	conn    net.Conn
	framer  *http2.Framer
	mu      sync.Mutex
	wake    *sync.Cond
	window  map[uint32]int // HTTP/2 send windows by stream; 0 is the connection's
	first   int            // window of a new stream
	resets  int
	settled bool
	err     error // why the connection has ended
	sent    int   // bytes of messages sent
}

// Hoard connects to addr in plain TCP. It calls method ("/package.Service/Method") with the token;
// "" is none. It returns when it has sent streams messages of size bytes except their last bytes,
// when the service has ended the calls or the connection, or when it could not send for a second.
func Hoard(t *testing.T, addr, method, token string, streams, size int) *Hoarder {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hoarder{conn: conn, framer: http2.NewFramer(conn, conn), window: map[uint32]int{0: 65535},
		first: 65535}
	h.wake = sync.NewCond(&h.mu)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	h.write(func() error { return h.framer.WriteSettings() })
	go h.read()
	defer h.settle()
	for i := range streams {
		h.begin(t, uint32(2*i+1), addr, method, token)
	}
	message := make([]byte, 16<<10)
	for rest := size - 1; rest > 0; rest -= len(message) {
		part := message[:min(rest, len(message))]
		for i := range streams {
			data := part
			if rest == size-1 {
				data = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)), part[5:]...)
			}
			if !h.send(uint32(2*i+1), data) {
				return h
			}
		}
	}
	return h
}

// settle waits until the service has acknowledged everything that was sent.
func (h *Hoarder) settle() {
	h.write(func() error { return h.framer.WritePing(false, [8]byte{1}) })
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.err == nil && !h.settled {
		h.wake.Wait()
	}
}

// Close closes the connection.
func (h *Hoarder) Close() { h.conn.Close() }

// Result returns the number of message bytes sent, the number of calls that the service ended, and
// whether it ended the connection.
func (h *Hoarder) Result() (sent, ended int, cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent, h.resets, h.err != nil
}

func (h *Hoarder) write(do func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = do()
	}
}

func (h *Hoarder) begin(t *testing.T, id uint32, addr, method, token string) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: method},
		{Name: ":authority", Value: addr},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}
	if token != "" {
		fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
	}
	for _, f := range fields {
		if err := enc.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	h.write(func() error {
		h.window[id] = h.first
		return h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(),
			EndHeaders: true})
	})
}

// send sends data as far as the windows allow. It returns false if no more can be sent.
func (h *Hoarder) send(id uint32, data []byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(data) > 0 {
		n, open := h.mayWrite(id)
		if !open {
			return h.err == nil
		}
		if n <= 0 {
			return false
		}
		n = min(n, len(data))
		if h.err = h.framer.WriteData(id, false, data[:n]); h.err != nil {
			return false
		}
		h.window[id] -= n
		h.window[0] -= n
		h.sent += n
		data = data[n:]
	}
	return true
}

// mayWrite waits up to a second until a stream may send, and returns the number of bytes. open
// reports whether stream and connection are open.
func (h *Hoarder) mayWrite(id uint32) (n int, open bool) {
	until := time.Now().Add(time.Second)
	timer := time.AfterFunc(time.Second, h.wake.Broadcast)
	defer timer.Stop()
	for {
		n, open = h.window[id]
		n = min(n, h.window[0])
		if !open || h.err != nil || n > 0 || !time.Now().Before(until) {
			return n, open && h.err == nil
		}
		h.wake.Wait()
	}
}

func (h *Hoarder) read() {
	for {
		f, err := h.framer.ReadFrame()
		h.mu.Lock()
		switch f := f.(type) {
		case nil:
		case *http2.WindowUpdateFrame:
			if _, open := h.window[f.StreamID]; open {
				h.window[f.StreamID] += int(f.Increment)
			}
		case *http2.PingFrame:
			h.pinged(f)
		case *http2.SettingsFrame:
			h.settings(f)
		case *http2.RSTStreamFrame:
			h.ended(f.StreamID)
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				h.ended(f.StreamID)
			}
		}
		if err != nil && h.err == nil {
			h.err = fmt.Errorf("connection ended: %w", err)
		}
		over := h.err != nil
		h.wake.Broadcast()
		h.mu.Unlock()
		if over {
			return
		}
	}
}

func (h *Hoarder) pinged(f *http2.PingFrame) {
	if f.IsAck() {
		h.settled = true
	} else if h.err == nil {
		h.err = h.framer.WritePing(true, f.Data)
	}
}

func (h *Hoarder) ended(id uint32) {
	if _, open := h.window[id]; open {
		delete(h.window, id)
		h.resets++
	}
}

func (h *Hoarder) settings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	if first, ok := f.Value(http2.SettingInitialWindowSize); ok {
		for id := range h.window {
			if id != 0 {
				h.window[id] += int(first) - h.first
			}
		}
		h.first = int(first)
	}
	h.err = h.framer.WriteSettingsAck()
}

// InUse returns the memory of heap and stacks, in bytes.
func InUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
