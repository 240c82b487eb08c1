package protocol

import (
	"bytes"
	"errors"
	"io"
)

// ErrLineTooLong means a line of more than MaxLine bytes, or of more than MaxLong where those are
// allowed. The start of the next line is unknown, so the connection has to end.
var ErrLineTooLong = errors.New("line longer than 8192 bytes, or a PUT longer than 32768")

// bufferSize has room for the longest line, and for some hundred usual lines a read.
const bufferSize = MaxLong

// maxEmptyReads is how often in a row a reader may return neither bytes nor an error.
const maxEmptyReads = 100

// Scanner splits a stream into lines. It has one buffer, and neither allocates nor copies a line;
// it only moves the beginning of a line at the buffer's end to the front. It serves one goroutine.
type Scanner struct {
	r          io.Reader
	buf        []byte
	start, end int   // buf[start:end] is read and not yet returned
	seen       int   // buf[start:seen] has no '\n'
	err        error // of r; returned after the last whole line
	long       bool  // all lines may have MaxLong bytes
}

// NewScanner returns a scanner of r with a buffer of 32 KiB.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{r: r, buf: make([]byte, bufferSize)}
}

// AllowLong lets all lines have up to MaxLong bytes, as a spider that has said PAYLOAD needs.
// Otherwise only PUT lines may.
func (s *Scanner) AllowLong() { s.long = true }

// most returns the most bytes of the line that begins at buf[start].
func (s *Scanner) most() int {
	if s.long || bytes.HasPrefix(s.buf[s.start:s.end], []byte("PUT ")) {
		return MaxLong
	}
	return MaxLine
}

// Next returns the next line without its '\n' or "\r\n"; it may be empty. The slice belongs to the
// scanner and is valid until the next call. At the end of the stream the error is io.EOF, or
// io.ErrUnexpectedEOF if the stream ends within a line; that partial line is not returned. Other
// errors are ErrLineTooLong and the reader's own. After an error Next returns the same error.
func (s *Scanner) Next() ([]byte, error) {
	for {
		if n := s.lineEnd(); n >= 0 {
			return s.take(n)
		}
		if s.end-s.start >= s.most() {
			return nil, ErrLineTooLong
		}
		if s.err != nil {
			return nil, s.err
		}
		s.fill()
	}
}

// Buffered reports whether Next has a line or an error without reading.
func (s *Scanner) Buffered() bool {
	return s.lineEnd() >= 0 || s.err != nil || s.end-s.start >= s.most()
}

// lineEnd returns the index of the next line's '\n' in buf, -1 if it has not been read.
func (s *Scanner) lineEnd() int {
	n := bytes.IndexByte(s.buf[s.seen:s.end], '\n')
	if n < 0 {
		s.seen = s.end
		return -1
	}
	s.seen += n
	return s.seen
}

// take returns the line that ends with the '\n' at buf[n].
func (s *Scanner) take(n int) ([]byte, error) {
	if n+1-s.start > s.most() {
		return nil, ErrLineTooLong
	}
	line := s.buf[s.start:n:n]
	s.start, s.seen = n+1, n+1
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, nil
}

// fill reads once, with room for at least the longest line.
func (s *Scanner) fill() {
	if len(s.buf)-s.start < s.most() || s.start == s.end {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.seen -= s.start
		s.start = 0
	}
	for range maxEmptyReads {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.fail(err)
			return
		}
		if n > 0 {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// fail stores the error until the whole lines have been returned. A line that the end of the stream
// cuts off is dropped: its DONE may be of another transaction than it seems.
func (s *Scanner) fail(err error) {
	if err == io.EOF && s.end > s.start && s.buf[s.end-1] != '\n' {
		err = io.ErrUnexpectedEOF
	}
	s.err = err
}
