package protocol

import (
	"bytes"
	"errors"
	"io"
)

// ErrLineTooLong: a line over MaxLine bytes. The place of the next line is lost, so the connection has to end.
var ErrLineTooLong = errors.New("line longer than 8192 bytes")

// bufferSize is several of the longest line, so that a part of a line is seldom moved, and some hundred usual ones a read.
const bufferSize = 4 * MaxLine

// maxEmptyReads is how often in a row a reader may give neither bytes nor an error.
const maxEmptyReads = 100

// Scanner cuts a stream into lines. It has one buffer, and neither allocates nor copies a line; only the beginning
// of a line at the buffer's end is moved to its front. It serves one goroutine.
type Scanner struct {
	r          io.Reader
	buf        []byte
	start, end int   // buf[start:end] is read and not yet handed out
	seen       int   // buf[start:seen] has no '\n'
	err        error // of r; handed out when no whole line is left
}

// NewScanner returns a scanner of r with a buffer of 32 KiB.
func NewScanner(r io.Reader) *Scanner {
	return &Scanner{r: r, buf: make([]byte, bufferSize)}
}

// Next returns the next line without its '\n' or "\r\n"; it may be empty. The slice is the scanner's and holds until
// the next call. At the end of the stream the error is io.EOF, or io.ErrUnexpectedEOF where it ends within a line,
// which is no line then; ErrLineTooLong, or the reader's own error. Errors last.
func (s *Scanner) Next() ([]byte, error) {
	for {
		if n := s.lineEnd(); n >= 0 {
			return s.take(n)
		}
		if s.end-s.start >= MaxLine {
			return nil, ErrLineTooLong
		}
		if s.err != nil {
			return nil, s.err
		}
		s.fill()
	}
}

// Buffered tells if Next has a line, or an error to tell, without reading.
func (s *Scanner) Buffered() bool {
	return s.lineEnd() >= 0 || s.err != nil || s.end-s.start >= MaxLine
}

// lineEnd returns where in buf the next line's '\n' is, -1 if it is not there yet.
func (s *Scanner) lineEnd() int {
	n := bytes.IndexByte(s.buf[s.seen:s.end], '\n')
	if n < 0 {
		s.seen = s.end
		return -1
	}
	s.seen += n
	return s.seen
}

// take hands out the line that ends with the '\n' at buf[n].
func (s *Scanner) take(n int) ([]byte, error) {
	if n+1-s.start > MaxLine {
		return nil, ErrLineTooLong
	}
	line := s.buf[s.start:n:n]
	s.start, s.seen = n+1, n+1
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, nil
}

// fill reads once, into at least the room that a line may need.
func (s *Scanner) fill() {
	if len(s.buf)-s.start < MaxLine || s.start == s.end {
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

// fail keeps the error for when the whole lines are handed out. A line cut off by the end of the stream is not one:
// its DONE may be of another transaction than it seems.
func (s *Scanner) fail(err error) {
	if err == io.EOF && s.end > s.start && s.buf[s.end-1] != '\n' {
		err = io.ErrUnexpectedEOF
	}
	s.err = err
}
