package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	redraw    = 200 * time.Millisecond // of the line on a terminal
	lineEvery = 3 * time.Second        // elsewhere
	clearLine = "\r\x1b[K"
)

// screen is standard error while a crawl runs: on a terminal its last line is drawn anew, and what is written meanwhile
// goes above it. Safe for concurrent use.
type screen struct {
	out      io.Writer
	terminal bool

	mu   sync.Mutex // guards line, and writing to out
	line string     // on a terminal, what its last line says
}

func newScreen(out io.Writer) *screen { return &screen{out: out, terminal: isTerminal(out)} }

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Write writes whole lines.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.out.Write(p)
	}
	if _, err := fmt.Fprintf(s.out, "%s%s%s", clearLine, p, s.line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show makes text the last line; "" removes it. What cannot be shown is not missed.
func (s *screen) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = text
	fmt.Fprintf(s.out, "%s%s", clearLine, text)
}

// watch shows how far a crawl is until ctx ends, and ends one that gets no further.
func (c *crawl) watch(ctx context.Context, s *screen) {
	every := lineEvery
	if s.terminal {
		every = redraw
		defer s.show("")
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	patience := c.patience()
	ended, since := 0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			if n := c.ledger.ended(); n != ended {
				ended, since = n, now
			} else if now.Sub(since) > patience {
				c.end(fmt.Errorf("%w (%v)", errStuck, patience))
			}
			c.tell(s)
		}
	}
}

// patience is how long no document may end: longer than any gap the daemon may keep.
func (c *crawl) patience() time.Duration {
	return time.Minute + 2*maxBackoff*max(gapOf(c.perSec), c.web.longestDelay())
}

func (c *crawl) tell(s *screen) {
	pages, _ := c.oracle.counts()
	text := fmt.Sprintf("%d of %d documents ended, %d of %d pages asked for, %v",
		c.ledger.ended(), len(c.plan.ends), pages, c.plan.pages, time.Since(c.began).Round(time.Second))
	if s.terminal {
		s.show(text)
		return
	}
	fmt.Fprintln(s, text)
}
