package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Without a terminal, progress is a line now and then, and one at the end.
func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "put", "sent", 100)
	p.add("a.txt", 10, 50)
	if out.Len() != 0 {
		t.Errorf("at once: %q", out.String())
	}
	p.next = time.Now().Add(-time.Second)
	p.add("b.txt", 5, 10)
	p.add("b.txt", 1, 10)
	p.clear()
	p.end()
	if want := "put: 15 lines sent, now b.txt\nput: 16 lines sent\n"; out.String() != want {
		t.Errorf("lines are %q; want %q", out.String(), want)
	}
}

// README's own put sends one line.
func TestProgressOfOneLine(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "put", "sent", 10)
	p.add("-", 1, 10)
	p.end()
	if want := "put: 1 line sent\n"; out.String() != want {
		t.Errorf("%q; want %q", out.String(), want)
	}
}

// On a terminal the bar disappears at the end, and the last line stays.
func TestProgressBar(t *testing.T) {
	for _, total := range []int64{20, -1} {
		var out bytes.Buffer
		p := progress{name: "put", what: "sent", w: &out,
			bar: progressbar.NewOptions64(total, progressbar.OptionSetWriter(io.Discard))}
		p.add("a.txt", 10, 15)
		if got := p.bar.State().CurrentNum; got != 15 {
			t.Errorf("total %d: the bar is at %d; want 15", total, got)
		}
		p.add("a.txt", 10, 100) // the file has grown
		p.clear()
		p.end()
		if !strings.HasSuffix(out.String(), "put: 20 lines sent\n") {
			t.Errorf("total %d: %q", total, out.String())
		}
	}
}
