// Package ndjson reads and writes the NDJSON lines of the doc index contract: bounded
// reading, parsing of bytes into values, appending of values to bytes.
package ndjson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong says that a line was longer than the limit. The reader has skipped it, and can read
// the next one.
var ErrTooLong = errors.New("line too long")

// ErrTooLarge says that a body has more bytes than its limit. It is final.
var ErrTooLarge = errors.New("the body is too large")

// Reader reads lines that end with \n or \r\n. It is not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	number int
}

// NewReader returns a Reader of lines of at most limit bytes, line ends included.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, limit)}
}

// Next returns the next line without its line end, and without a byte order mark before it. The
// line is valid until the next call. The last line of a body needs no line end. Next returns
// ErrTooLong in place of a line that is too long. Any other error is final; Next then drops an
// incomplete last line.
func (r *Reader) Next() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	if err == bufio.ErrBufferFull {
		r.number++
		return nil, r.skip()
	}
	if err != nil {
		return nil, err
	}
	r.number++
	line = bytes.TrimSuffix(bytes.TrimPrefix(line, byteOrderMark), []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// byteOrderMark is what some editors put before the first line. Files that were joined have it in
// between.
var byteOrderMark = []byte("\ufeff")

// skip reads to the end of a line and returns ErrTooLong, or the error that it met before the end.
func (r *Reader) skip() error {
	for {
		switch _, err := r.in.ReadSlice('\n'); err {
		case nil, io.EOF: // Next meets the EOF again
			return ErrTooLong
		case bufio.ErrBufferFull:
		default:
			return err
		}
	}
}

// Number returns the number of the last line that Next returned or skipped, counted from 1.
func (r *Reader) Number() int { return r.number }

// Limit returns a reader that reads from r, and fails with ErrTooLarge once r has more than n
// bytes.
func Limit(r io.Reader, n int64) io.Reader { return &limited{r: r, most: n, left: n} }

type limited struct {
	r          io.Reader
	most, left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), fmt.Errorf("%w: at most %d bytes are taken", ErrTooLarge, l.most)
	}
	l.left -= int64(n)
	return n, err
}
