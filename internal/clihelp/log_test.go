package clihelp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// logged is a line of a log.
type logged struct {
	N, Lines int
	Message  string
}

// start returns a started writer to out, and a logger over it.
func start(out io.Writer) (*LogWriter, zerolog.Logger) {
	w := NewLogWriter(out)
	w.Start()
	return w, zerolog.New(w)
}

// TestLogWriterPipe: nobody reads a pipe while several goroutines log more than it holds. They do not wait.
// When it is read, each line is there, in the order of its goroutine, or counted as dropped.
func TestLogWriterPipe(t *testing.T) {
	const writers, lines = 4, 80_000
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	w, log := start(out)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range lines {
				log.Info().Int("n", i*lines+n).Msg("one of many")
			}
		})
	}
	all.Wait()
	go func() {
		w.Close(nil)
		<-w.done // however long reading takes here
		out.Close()
	}()
	var last [writers]int
	seen, dropped := 0, 0
	for text := bufio.NewScanner(in); text.Scan(); {
		var line logged
		if err := json.Unmarshal(text.Bytes(), &line); err != nil {
			t.Fatalf("line %q: %v", text.Bytes(), err)
		}
		if line.Lines > 0 {
			dropped += line.Lines
			continue
		}
		if i := line.N / lines; line.N%lines < last[i] {
			t.Fatalf("line %d of a goroutine comes after its line %d", line.N%lines, last[i])
		} else {
			last[i] = line.N % lines
		}
		seen++
	}
	if seen+dropped != writers*lines || dropped == 0 {
		t.Errorf("%d lines came and %d were counted as dropped; want %d together", seen, dropped, writers*lines)
	}
}

// hanging is an output whose writes wait until it is open.
type hanging struct {
	open chan struct{}
	text strings.Builder
}

func (h *hanging) Write(line []byte) (int, error) {
	<-h.open
	return h.text.Write(line)
}

// TestLogWriterCloses: Close waits for lines that are written in time, and no longer than lastWait. Then
// PrintError waits for nobody either.
func TestLogWriterCloses(t *testing.T) {
	cause := errors.New("the index is gone")
	for _, c := range []struct {
		back, took time.Duration
		prints     bool
	}{
		{back: 0, took: 0, prints: true},
		{back: lastWait - 1, took: lastWait - 1, prints: true},
		{back: time.Hour, took: lastWait},
	} {
		synctest.Test(t, func(t *testing.T) {
			out := &hanging{open: make(chan struct{})}
			w, log := start(out)
			log.Info().Msg("the last words")
			begin := time.Now()
			time.AfterFunc(c.back, func() { close(out.open) })
			err := w.Close(cause)
			if took := time.Since(begin); took != c.took || !errors.Is(err, cause) {
				t.Errorf("a reader that is back after %v: Close = %v after %v; want %v after %v", c.back, err, took,
					cause, c.took)
			}
			var said strings.Builder
			PrintError(&said, "program", err)
			if got := said.String() == "program: the index is gone\n"; got != c.prints {
				t.Errorf("a reader that is back after %v: PrintError prints %q", c.back, said.String())
			}
			<-out.open
			synctest.Wait()
			if !strings.Contains(out.text.String(), "the last words") {
				t.Errorf("the log is %q", out.text.String())
			}
		})
	}
}

// failing is an output with room for some bytes.
type failing struct {
	room  int
	tries int
	text  strings.Builder
}

func (f *failing) Write(line []byte) (int, error) {
	f.tries++
	n, _ := f.text.Write(line[:min(f.room, len(line))])
	f.room -= n
	if n < len(line) {
		return n, errors.New("no space")
	}
	return n, nil
}

// TestLogWriterFails: lines that cannot be written are counted, once, and tried once. A line of which a piece
// was written spoils no other line. The count is not lost when it cannot be written either.
func TestLogWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &failing{room: 3}
		w, log := start(out)
		for i := range 10 {
			log.Info().Int("n", i).Msg("lost")
		}
		if out.tries != 10 {
			t.Errorf("ten lines were written %d times", out.tries)
		}
		back := `{"level":"info","message":"back"}` + "\n"
		out.room = 1 + len(back)
		log.Info().Msg("back")
		out.room = 1 << 20
		log.Info().Msg("back")
		if err := w.Close(nil); err != nil {
			t.Error(err)
		}
		want := `{"l` + "\n" + back + back + `{"level":"warn","lines":10,"time":"` + time.Now().Format(time.RFC3339) +
			`","message":"log lines were dropped: the log could not be written"}` + "\n"
		if got := out.text.String(); got != want {
			t.Errorf("the log is\n%s\nwant\n%s", got, want)
		}
	})
}

// TestLogWriterWaits: Write returns when its line is written. It waits once for a reader that hangs, and again a
// while after the reader is back.
func TestLogWriterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &hanging{open: make(chan struct{})}
		w, log := start(out)
		for _, want := range []time.Duration{patience, 0} {
			begin := time.Now()
			log.Info().Msg("a line")
			if took := time.Since(begin); took != want {
				t.Errorf("a reader that hangs held up a line for %v; want %v", took, want)
			}
		}
		close(out.open)
		time.Sleep(slowFor + 1)
		for n := 3; n < 10; n++ {
			log.Info().Msg("a line")
			if got := strings.Count(out.text.String(), "a line\"}\n"); got != n {
				t.Fatalf("%d lines are written after Write of %d", got, n)
			}
		}
		w.Close(nil)
	})
}

// slow is an output that takes a while for each line.
type slow struct {
	takes time.Duration
	text  strings.Builder
}

func (s *slow) Write(line []byte) (int, error) {
	time.Sleep(s.takes)
	return s.text.Write(line)
}

// TestLogWriterSlow: an output that is slow, and does not hang, holds up no goroutine for longer than one that
// hangs. Each line is written. A while after the output was slow, Write returns when its line is written.
func TestLogWriterSlow(t *testing.T) {
	const each = 20
	for _, takes := range []time.Duration{slowAfter, 20 * time.Millisecond, patience - 1, patience, 4 * patience} {
		for _, goroutines := range []int{1, 2, 100} {
			synctest.Test(t, func(t *testing.T) {
				out := &slow{takes: takes}
				w, log := start(out)
				var all sync.WaitGroup
				for range goroutines {
					all.Go(func() {
						begin := time.Now()
						for range each {
							log.Info().Msg("a line")
						}
						if took := time.Since(begin); took > patience {
							t.Errorf("%v a line: one of %d goroutines was held up for %v by %d lines", takes,
								goroutines, took, each)
						}
					})
				}
				all.Wait()
				time.Sleep(time.Duration(goroutines*each) * takes)
				synctest.Wait()
				out.takes = 0
				time.Sleep(slowFor + 1)
				log.Info().Msg("a line")
				if n := strings.Count(out.text.String(), "\n"); n != goroutines*each+1 {
					t.Errorf("%v a line: %d lines are written; want %d", takes, n, goroutines*each+1)
				}
				w.Close(nil)
			})
		}
	}
}

// TestLogWriterCounts: lines that were dropped are counted at the end even if nothing was logged since the disk
// has room again. The count goes to the other receiver as well.
func TestLogWriterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, also := &failing{}, &strings.Builder{}
		w := NewLogWriter(out, also)
		w.Start()
		fmt.Fprintln(w, "lost")
		fmt.Fprintln(w, "lost")
		out.room = 1 << 20
		w.Close(nil)
		want := `{"level":"warn","lines":2,"time":"` + time.Now().Format(time.RFC3339) +
			`","message":"log lines were dropped: the log could not be written"}` + "\n"
		if out.text.String() != want || also.String() != want {
			t.Errorf("the log is %q, the other receiver has %q; want %q for both", out.text.String(), also, want)
		}
	})
}

// TestPrintErrorWaitsNotForEver: nobody reads the output.
func TestPrintErrorWaitsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, begin := &hanging{open: make(chan struct{})}, time.Now()
		PrintError(out, "program", errors.New("no such file"))
		if took := time.Since(begin); took != lastWait {
			t.Errorf("PrintError took %v; want %v", took, lastWait)
		}
		close(out.open)
	})
}

// TestLogWriterLongLine: a line longer than all that may wait is written if nothing waits.
func TestLogWriterLongLine(t *testing.T) {
	var out strings.Builder
	w, _ := start(&out)
	long := strings.Repeat("x", 2*maxWaiting) + "\n"
	fmt.Fprint(w, long)
	if w.Close(nil); out.String() != long {
		t.Errorf("%d bytes were written; want %d", out.Len(), len(long))
	}
}

// TestIsTerminal asks for /dev/tty's kind of file, which /dev/null is, too.
func TestIsTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(file) || IsTerminal(&strings.Builder{}) || IsTerminal(NewLogWriter(file)) {
		t.Error("a file or a buffer counts as a terminal")
	}
	if !IsTerminal(null) || !IsTerminal(NewLogWriter(null)) {
		t.Error("a character device counts as a file")
	}
}
