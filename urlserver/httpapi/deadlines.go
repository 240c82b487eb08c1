package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	// maxBodies bounds the requests whose bodies are in memory at once. Those of a store's
	// candidates and outcomes have up to 64 MiB each.
	maxBodies = 16

	// bodyTimeout bounds the reading of one of those bodies.
	bodyTimeout = time.Minute

	// writePiece is the most that a peer has to read within one timeout.
	writePiece = 64 << 10
)

// withDeadlines fails a request whose peer neither sends nor reads anything for ioTimeout. A
// request may take as long as it likes while bytes move.
func (s *Server) withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dw := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: s.ioTimeout}
		if r.ContentLength != 0 {
			body := &deadlineReader{ReadCloser: r.Body, control: dw.control, timeout: s.ioTimeout}
			body.extend()
			r.Body = body
		}
		dw.extend()
		next.ServeHTTP(dw, r)
	})
}

// deadlineReader is a body whose Read fails when nothing comes within timeout.
type deadlineReader struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
	latest  time.Time // no deadline is later; zero: not set
}

// Read extends the deadline. At the body's end it removes the deadline, since the connection then
// waits for the next request. After a failure the deadline stays in the past, so that net/http does
// not wait for the rest of the body.
func (b *deadlineReader) Read(p []byte) (int, error) {
	b.extend()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // fails for a closed connection only
	}
	return n, err
}

func (b *deadlineReader) extend() {
	until := time.Now().Add(b.timeout)
	if !b.latest.IsZero() && b.latest.Before(until) {
		until = b.latest
	}
	_ = b.control.SetReadDeadline(until) // a closed connection fails the read, too
}

// deadlineWriter is a response whose Write fails when the peer reads nothing within timeout.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// Unwrap gives http.ResponseController the connection.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader extends the deadline.
func (w *deadlineWriter) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write extends the deadline with each piece.
func (w *deadlineWriter) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0 && err == nil; first = false {
		piece := p[:min(len(p), writePiece)]
		w.extend()
		var m int
		m, err = w.ResponseWriter.Write(piece)
		n += m
		p = p[len(piece):]
	}
	return n, err
}

func (w *deadlineWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // a closed connection fails the write, too
}

// limitBodies bounds the number of bodies in memory, and the time that each takes.
func (s *Server) limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.bodies <- struct{}{}:
			defer func() { <-s.bodies }()
		case <-r.Context().Done():
			return
		}
		if body, ok := r.Body.(*deadlineReader); ok {
			body.latest = time.Now().Add(bodyTimeout)
		}
		next.ServeHTTP(w, r)
	})
}
