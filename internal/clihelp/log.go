package clihelp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	maxWaiting = 4 << 20         // bytes of log lines that wait to be written
	lastWait   = 3 * time.Second // time for those when the program ends
)

// LogWriter is an [io.Writer] for lines of a log. Write never waits for the reader of the log, such as a
// terminal after Ctrl-S: lines wait, and those for which there is no room are dropped and counted. Any
// goroutine may call Write.
type LogWriter struct {
	out  io.Writer
	more chan struct{} // holds one when there may be something to do
	done chan struct{} // closed when run has ended

	mu      sync.Mutex // guards all below; held for memory work only
	waiting []byte     // whole lines
	dropped int        // lines since that was logged last
	closed  bool
}

// NewLogWriter returns a writer to out. Lines wait until Start.
func NewLogWriter(out io.Writer) *LogWriter {
	return &LogWriter{out: out, more: make(chan struct{}, 1), done: make(chan struct{})}
}

// Write takes one line.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	if n := len(w.waiting); n > 0 && n+len(line) > maxWaiting {
		w.dropped++
	} else {
		w.waiting = append(w.waiting, line...)
	}
	w.mu.Unlock()
	w.wake()
	return len(line), nil
}

func (w *LogWriter) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// Start begins to write. When lines were dropped, log says how many as soon as the reader is back. The caller
// calls Close.
func (w *LogWriter) Start(log zerolog.Logger) { go w.run(log) }

func (w *LogWriter) run(log zerolog.Logger) {
	defer close(w.done)
	for fails := false; ; {
		text, dropped, closed := w.take(!fails)
		if dropped > 0 { // before any later line
			log.Warn().Int("lines", dropped).Msg("log lines were dropped: the log could not be written")
		}
		for line := range bytes.Lines(text) {
			_, err := w.out.Write(line)
			if fails = err != nil; fails {
				w.drop()
			}
		}
		switch {
		case len(text) > 0 || dropped > 0: // there may be more
		case closed:
			return
		default:
			<-w.more
		}
	}
}

// take returns the lines that wait and, if count is set, how many were dropped after them.
func (w *LogWriter) take(count bool) (text []byte, dropped int, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, w.waiting = w.waiting, nil
	if count {
		dropped, w.dropped = w.dropped, 0
	}
	return text, dropped, w.closed
}

// drop counts a line that could not be written.
func (w *LogWriter) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped++
}

// Close waits until all lines are written, for lastWait at most. It returns err. If lines are left, PrintError
// does not print that error, for which it would wait for the same reader.
func (w *LogWriter) Close(err error) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake()
	select {
	case <-w.done:
	case <-time.After(lastWait):
		if err != nil {
			return unread{err}
		}
	}
	return err
}

// unread is an error that nobody would read.
type unread struct{ error }

func (e unread) Unwrap() error { return e.error }

// PrintError prints the error that ends a program.
func PrintError(errs io.Writer, program string, err error) {
	if _, is := errors.AsType[unread](err); !is {
		fmt.Fprintf(errs, "%s: %s\n", program, Harmless(err.Error()))
	}
}

// IsTerminal reports whether w, or the output of a LogWriter, is a terminal.
func IsTerminal(w io.Writer) bool {
	if l, ok := w.(*LogWriter); ok {
		w = l.out
	}
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
