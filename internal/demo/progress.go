package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"urlserver/internal/clihelp"
)

const (
	redraw    = 200 * time.Millisecond // on a terminal
	lineEvery = 3 * time.Second        // elsewhere
	clearDown = "\r\x1b[J"             // from the start of the line to the end of the screen
	liveRows  = 12                     // of the table on a terminal
)

// screen is standard error while a crawl runs. On a terminal its last lines show the state and are
// redrawn in place; other output scrolls above them. Safe for concurrent use.
type screen struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex // guards state, and writing to out
	state string     // what the last lines of a terminal show
}

func newScreen(out io.Writer) *screen { return &screen{out: out, terminal: clihelp.IsTerminal(out)} }

// Write writes whole lines.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "" {
		return s.out.Write(p)
	}
	if _, err := fmt.Fprintf(s.out, "%s%s%s", s.clear(), p, s.state); err != nil {
		return 0, err
	}
	return len(p), nil
}

// show replaces the state; "" removes it. It ignores failed writes, because the state is only for
// people who watch.
func (s *screen) show(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear := s.clear()
	s.state = state
	fmt.Fprintf(s.out, "%s%s", clear, state)
}

// clear returns the text that moves the cursor to the first line of the state and removes the
// state.
func (s *screen) clear() string {
	if up := strings.Count(s.state, "\n"); up > 0 {
		return fmt.Sprintf("\x1b[%dA%s", up, clearDown)
	}
	return clearDown
}

// watch shows the progress of a crawl until ctx ends. It ends a crawl in which no document has
// ended for too long.
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
			if n := c.docIndex.ended(); n != ended {
				ended, since = n, now
			} else if now.Sub(since) > patience {
				c.end(fmt.Errorf("%w (%v)", errStuck, patience))
			}
			c.showProgress(s)
		}
	}
}

// patience returns how long no document may end before the crawl counts as stuck. It is longer than
// any gap that the daemon may keep.
func (c *crawl) patience() time.Duration {
	return time.Minute + 2*maxBackoff*max(gapOf(c.perSec), c.web.longestDelay())
}

// showProgress shows the progress: one line, and on a terminal the table below it.
func (c *crawl) showProgress(s *screen) {
	pages, _ := c.oracle.counts()
	text := fmt.Sprintf("%d of %d documents ended, %d of %d pages asked for, %v",
		c.docIndex.ended(), len(c.plan.ends), pages, c.plan.pages, time.Since(c.began).Round(time.Second))
	if !s.terminal {
		fmt.Fprintln(s, text)
		return
	}
	var b strings.Builder
	rows := c.oracle.rows()
	table(&b, rows[:min(len(rows), liveRows)])
	if more := len(rows) - liveRows; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	s.show(text + "\n\n" + strings.TrimRight(b.String(), "\n"))
}
