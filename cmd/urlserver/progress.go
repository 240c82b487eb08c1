package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"urlserver/internal/clihelp"
)

// progressEvery is the time between two lines of progress if there is no terminal for a bar.
const progressEvery = 10 * time.Second

// progress shows the progress of a command: a bar on a terminal, lines elsewhere.
type progress struct {
	w     io.Writer
	name  string                   // of the command
	what  string                   // what it does with lines
	bar   *progressbar.ProgressBar // nil: lines
	lines int
	next  time.Time // the time of the next line
}

// newProgress returns the progress of reading total bytes; -1: unknown.
func newProgress(w io.Writer, name, what string, total int64) progress {
	p := progress{w: w, name: name, what: what, next: time.Now().Add(progressEvery)}
	if clihelp.IsTerminal(w) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(name), progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(total > 0))
	}
	return p
}

// add adds lines and bytes that were read.
func (p *progress) add(file string, lines, bytes int) {
	p.lines += lines
	if p.bar != nil {
		_ = p.bar.Add(bytes) // a file that grows meanwhile is no error
		return
	}
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(progressEvery)
		fmt.Fprintf(p.w, "%s: %s %s, now %s\n", p.name, count(p.lines, "line"), p.what, file)
	}
}

// count phrases a number of things, as "1 line" or "2 lines".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// clear clears the bar for a line of text.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear() // an error of the terminal does not matter
	}
}

// end writes the last line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish() // an error of the terminal does not matter
	}
	fmt.Fprintf(p.w, "%s: %s %s\n", p.name, count(p.lines, "line"), p.what)
}
