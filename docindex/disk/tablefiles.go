package disk

import (
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble writes a table in pieces of 4 KiB and more. Compactions, and iterators that read much of a table, read it
// block by block. The system calls took a twentieth of the CPU of puts. So the store writes and reads tables in
// larger pieces.
const pieceLen = 64 << 10 // bytes

var pieces = sync.Pool{New: func() any { return new([pieceLen]byte) }}

// tableWriter is a file for a new table. After each sync, and after Close, the file has all that was written.
// It is used by one goroutine at a time.
type tableWriter struct {
	vfs.File
	piece *[pieceLen]byte // nil: n is 0
	n     int             // bytes in piece
	err   error           // of the first write that failed; the file lacks a piece
}

// Write is [vfs.File.Write].
func (w *tableWriter) Write(b []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	for len(b) > 0 {
		if w.piece == nil {
			w.piece = pieces.Get().(*[pieceLen]byte)
		}
		some := copy(w.piece[w.n:], b)
		w.n, n, b = w.n+some, n+some, b[some:]
		if w.n < pieceLen {
			break
		}
		if err := w.flush(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// flush writes the piece. After an error all later calls return the error; Close still closes the file.
func (w *tableWriter) flush() error {
	if w.piece == nil {
		return w.err
	}
	if w.n > 0 {
		_, w.err = w.File.Write(w.piece[:w.n])
	}
	pieces.Put(w.piece)
	w.piece, w.n = nil, 0
	return w.err
}

// Sync is [vfs.File.Sync].
func (w *tableWriter) Sync() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.File.Sync()
}

// SyncData is [vfs.File.SyncData].
func (w *tableWriter) SyncData() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.File.SyncData()
}

// Close is [vfs.File.Close].
func (w *tableWriter) Close() error {
	err := w.flush()
	if closing := w.File.Close(); err == nil {
		err = closing
	}
	return err
}

// sequentialReader is a table that is read from one end to the other. It is used by one goroutine at a time.
type sequentialReader struct {
	vfs.File
	piece *[pieceLen]byte // nil: there is none
	at    int64           // the place of piece in the file
	n     int             // bytes in piece
	next  int64           // where the last read ended
}

// ReadAt is [vfs.File.ReadAt]. It reads a whole piece only where the last read ended.
func (r *sequentialReader) ReadAt(b []byte, at int64) (n int, err error) {
	follows := at == r.next
	r.next = at + int64(len(b))
	if r.piece == nil || at < r.at || at+int64(len(b)) > r.at+int64(r.n) {
		if !follows || len(b) >= pieceLen {
			return r.File.ReadAt(b, at)
		}
		if r.piece == nil {
			r.piece = pieces.Get().(*[pieceLen]byte)
		}
		r.at, r.n = at, 0
		r.n, err = r.File.ReadAt(r.piece[:], at)
		if r.n >= len(b) {
			err = nil // it may be the end of the file
		}
	}
	n = copy(b, r.piece[at-r.at:r.n])
	if n < len(b) && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close is [vfs.File.Close].
func (r *sequentialReader) Close() error {
	if r.piece != nil {
		pieces.Put(r.piece)
		r.piece, r.n = nil, 0
	}
	return r.File.Close()
}

// Open is [vfs.FS.Open].
func (s *space) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.Open(name, opts...)
	if err == nil && slices.Contains(opts, vfs.SequentialReadsOption) {
		f = &sequentialReader{File: f}
	}
	return f, err
}
