package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressEvery is between two lines of progress where no terminal shows a bar.
const progressEvery = 10 * time.Second

// progress shows how far a command is: a bar on a terminal, else a line now and then.
type progress struct {
	w     io.Writer
	name  string                   // of the command
	what  string                   // it does with lines
	bar   *progressbar.ProgressBar // nil: lines
	lines int
	next  time.Time // when to write a line again
}

// newProgress is for so many bytes; -1: nobody knows.
func newProgress(w io.Writer, name, what string, total int64) progress {
	p := progress{w: w, name: name, what: what, next: time.Now().Add(progressEvery)}
	if isTerminal(w) {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(name), progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(total > 0))
	}
	return p
}

// add says that so many lines and bytes more have been taken.
func (p *progress) add(file string, lines, bytes int) {
	p.lines += lines
	if p.bar != nil {
		_ = p.bar.Add(bytes) // a file that grows meanwhile is no fault
		return
	}
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(progressEvery)
		fmt.Fprintf(p.w, "%s: %d lines %s, now %s\n", p.name, p.lines, p.what, file)
	}
}

// clear makes room for a line of text.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear() // the terminal is for show
	}
}

// end leaves the last word.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish() // the terminal is for show
	}
	fmt.Fprintf(p.w, "%s: %d lines %s\n", p.name, p.lines, p.what)
}
