package httpapi

import (
	"io"
	"net/http"
	"time"
)

const (
	// maxBodies is how many requests at once may have their bodies taken into memory,
	// which is up to 64 MiB each: a store's candidates and outcomes.
	maxBodies = 16

	// bodyTimeout is for one of those bodies, from the request's beginning.
	bodyTimeout = time.Minute

	// writePiece is the most that has to get through within one patience.
	writePiece = 64 << 10
)

// withDeadlines gives a peer as long as it wants, while it goes on reading and writing.
func (s *Server) withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pw := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: s.ioTimeout}
		if r.ContentLength != 0 {
			body := &deadlineReader{ReadCloser: r.Body, control: pw.control, patience: s.ioTimeout}
			body.renew()
			r.Body = body
		}
		pw.renew()
		next.ServeHTTP(pw, r)
	})
}

// deadlineReader fails when nothing comes for too long.
type deadlineReader struct {
	io.ReadCloser
	control  *http.ResponseController
	patience time.Duration
	last     time.Time // no patience beyond; zero: none set
}

// Read renews the patience. At the body's end it ends: what the connection waits for
// then is the next request. After a failure it stays over, so that net/http does not wait
// for the rest of the body.
func (b *deadlineReader) Read(p []byte) (int, error) {
	b.renew()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // a connection that is gone has none
	}
	return n, err
}

func (b *deadlineReader) renew() {
	until := time.Now().Add(b.patience)
	if !b.last.IsZero() && b.last.Before(until) {
		until = b.last
	}
	_ = b.control.SetReadDeadline(until) // a connection that is gone fails the read
}

// deadlineWriter fails when nothing is taken for too long.
type deadlineWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// Unwrap is for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader renews the patience.
func (w *deadlineWriter) WriteHeader(status int) {
	w.renew()
	w.ResponseWriter.WriteHeader(status)
}

// Write renews the patience with each piece.
func (w *deadlineWriter) Write(p []byte) (n int, err error) {
	for first := true; first || len(p) > 0 && err == nil; first = false {
		piece := p[:min(len(p), writePiece)]
		w.renew()
		var m int
		m, err = w.ResponseWriter.Write(piece)
		n += m
		p = p[len(piece):]
	}
	return n, err
}

func (w *deadlineWriter) renew() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience)) // a connection that is gone fails the write
}

// limitBodies bounds how many bodies are in memory at once, and for how long.
func (s *Server) limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.bodies <- struct{}{}:
			defer func() { <-s.bodies }()
		case <-r.Context().Done():
			return
		}
		if body, ok := r.Body.(*deadlineReader); ok {
			body.last = time.Now().Add(bodyTimeout)
		}
		next.ServeHTTP(w, r)
	})
}
