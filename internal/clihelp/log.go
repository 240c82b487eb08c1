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
	maxWaiting = 4 << 20               // bytes of log lines that wait to be written
	patience   = 50 * time.Millisecond // how long Write waits for its line to be written
	slowAfter  = 5 * time.Millisecond  // an output is slow that takes so long to write what waited for it
	slowFor    = time.Second           // and so long after that
	lastWait   = 3 * time.Second       // time for the lines that wait when the program ends
)

// LogWriter is an [io.Writer] for lines of a log. A program goes on while the output of its log is slow or hangs,
// such as a terminal after Ctrl-S: lines wait then, and those for which there is no room are dropped and counted.
// While the output is quick, Write returns when the line is written, so a program that panics after it has
// logged a line does not lose the line. Any goroutine may call Write.
type LogWriter struct {
	out  io.Writer
	also zerolog.LevelWriter
	more chan struct{} // holds one when there may be something to do
	done chan struct{} // closed when run has ended

	mu        sync.Mutex    // guards all below; held for memory work only
	waiting   []byte        // whole lines
	written   chan struct{} // closed when they are written
	dropped   int           // lines that the log does not count yet
	hangs     bool          // Write does not wait: the output takes long, or nothing is written yet or any more
	slowUntil time.Time     // until then Write does not wait either
	closed    bool
}

// NewLogWriter returns a writer to out. Lines wait until Start. The line that counts dropped ones also goes to
// also, as JSON.
func NewLogWriter(out io.Writer, also ...io.Writer) *LogWriter {
	return &LogWriter{out: out, also: zerolog.MultiLevelWriter(also...), more: make(chan struct{}, 1),
		done: make(chan struct{}), written: make(chan struct{}), hangs: true}
}

// Write takes one line.
func (w *LogWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	written, waits := w.written, !w.hangs && time.Now().After(w.slowUntil)
	if n := len(w.waiting); n > 0 && n+len(line) > maxWaiting {
		w.dropped++
		waits = false
	} else {
		w.waiting = append(w.waiting, line...)
	}
	w.mu.Unlock()
	w.wake()
	if waits {
		select {
		case <-written:
		case <-time.After(patience):
			w.setHangs(written)
		}
	}
	return len(line), nil
}

func (w *LogWriter) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// setHangs notes that the output takes long, unless the lines of written are written meanwhile.
func (w *LogWriter) setHangs(written <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-written:
	default:
		w.hangs = true
	}
}

// Start begins to write. When lines were dropped, the log says how many as soon as the reader is back. The caller
// calls Close.
func (w *LogWriter) Start() {
	w.mu.Lock()
	w.hangs = false
	w.mu.Unlock()
	go w.run()
}

func (w *LogWriter) run() {
	defer close(w.done)
	for out := (lineWriter{out: w.out}); ; {
		text, written, dropped, closed := w.take()
		begin := time.Now()
		for line := range bytes.Lines(text) {
			if out.Write(line); out.failed {
				w.drop(1)
			}
		}
		if dropped > 0 && (closed || !out.failed) {
			w.count(&out, dropped)
		}
		w.finish(written, time.Since(begin) >= slowAfter, closed)
		switch {
		case len(text) > 0: // there may be more
		case closed:
			return
		default:
			<-w.more
		}
	}
}

// take returns the lines that wait, the channel to close when they are written, and how many lines were dropped.
func (w *LogWriter) take() (text []byte, written chan struct{}, dropped int, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, written = w.waiting, w.written
	w.waiting, w.written = nil, make(chan struct{})
	return text, written, w.dropped, w.closed
}

// finish tells those who wait that their lines are written.
func (w *LogWriter) finish(written chan struct{}, slow, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(written)
	w.hangs = closed
	if slow {
		w.slowUntil = time.Now().Add(slowFor)
	}
}

// count logs how many lines were dropped.
func (w *LogWriter) count(out *lineWriter, dropped int) {
	say := func(to io.Writer) {
		log := zerolog.New(to).With().Timestamp().Logger()
		log.Warn().Int("lines", dropped).Msg("log lines were dropped: the log could not be written")
	}
	if say(out.own()); !out.failed {
		w.drop(-dropped)
		say(w.also)
	}
}

// drop counts n lines that were not written.
func (w *LogWriter) drop(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped += n
}

// lineWriter writes lines, each at the beginning of a line of the output.
type lineWriter struct {
	out    io.Writer
	piece  bool // the last line of the output is the beginning of one that could not be written
	failed bool // the last line could not be written
}

// Write sets failed instead of returning an error: zerolog would print that, to the same output.
func (w *lineWriter) Write(line []byte) (int, error) {
	text := line
	if w.piece {
		text = append([]byte{'\n'}, line...)
	}
	n, err := w.out.Write(text)
	w.failed = err != nil
	w.piece = w.failed && (w.piece || n > 0)
	return len(line), nil
}

// own returns a writer of lines about the log itself, in JSON.
func (w *lineWriter) own() io.Writer {
	if !IsTerminal(w.out) {
		return w
	}
	return zerolog.ConsoleWriter{Out: w, TimeFormat: TimeFormat}
}

// TimeFormat is the format of times in a log on a terminal.
const TimeFormat = "2006-01-02 15:04:05"

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

// PrintError prints the error that ends a program. It waits for the reader no longer than lastWait.
func PrintError(errs io.Writer, program string, err error) {
	if _, is := errors.AsType[unread](err); is {
		return
	}
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprintf(errs, "%s: %s\n", program, Harmless(err.Error()))
	}()
	select {
	case <-printed:
	case <-time.After(lastWait):
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
