// Package ndjson reads and writes the NDJSON lines of the doc index contract: bounded
// reading, parsing of bytes into values, appending of values to bytes.
package ndjson

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong stands for a line over the limit; it was skipped, and the next can be read.
var ErrTooLong = errors.New("line too long")

// ErrTooLarge ends a body that has more bytes than it may have.
var ErrTooLarge = errors.New("body too large")

// Reader reads lines that end with \n or \r\n. Not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	number int
}

// NewReader returns a Reader of lines of at most limit bytes, their end included.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, limit)}
}

// Next returns the next line without its end; it is good until the next call. The last
// line needs no end. ErrTooLong comes in place of a line; any other error is final, and
// what the body had after its last line end is dropped with it.
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
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// skip drops the rest of a line and answers ErrTooLong, or why it has no end.
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

// Number is that of the line returned last, counted from 1.
func (r *Reader) Number() int { return r.number }

// Limit returns a reader of r that fails with ErrTooLarge once more than n bytes come.
func Limit(r io.Reader, n int64) io.Reader { return &limited{r: r, left: n} }

type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), ErrTooLarge
	}
	l.left -= int64(n)
	return n, err
}
