package main

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// daemonLog is the log of a daemon. A goroutine reads it all the time, so that the daemon never
// blocks.
type daemonLog struct {
	t *testing.T

	mu    sync.Mutex // guards all below
	lines []string
	next  int           // the line that until reads next
	more  chan struct{} // closed and replaced when there is another line; closed at the end of the log
	ended bool
}

func readLog(t *testing.T, in io.Reader) *daemonLog {
	l := &daemonLog{t: t, more: make(chan struct{})}
	go func() {
		for lines := bufio.NewReader(in); ; {
			line, err := lines.ReadString('\n')
			l.add(line, err != nil)
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *daemonLog) add(line string, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line != "" {
		l.lines = append(l.lines, line)
	}
	close(l.more)
	if l.ended = last; !last {
		l.more = make(chan struct{})
	}
}

// line waits for the next line; false: the log has ended.
func (l *daemonLog) line(timeout <-chan time.Time) (text string, ok bool) {
	l.t.Helper()
	for {
		l.mu.Lock()
		more, ended := l.more, l.ended
		if l.next < len(l.lines) {
			text, ok = l.lines[l.next], true
			l.next++
		}
		l.mu.Unlock()
		if ok || ended {
			return text, ok
		}
		select {
		case <-more:
		case <-timeout:
			l.t.Fatalf("waited in vain for another line of the log:\n%s", l.all())
		}
	}
}

// until returns the next line whose message contains text.
func (l *daemonLog) until(text string) map[string]any {
	l.t.Helper()
	return l.untilAll(text)[0]
}

// untilAll returns the next line for each text, in any order.
func (l *daemonLog) untilAll(texts ...string) (lines []map[string]any) {
	l.t.Helper()
	lines = make([]map[string]any, len(texts))
	timeout := time.After(patience)
	for slices.ContainsFunc(lines, func(line map[string]any) bool { return line == nil }) {
		next, ok := l.line(timeout)
		if !ok {
			l.t.Fatalf("the log ended without one of %q:\n%s", texts, l.all())
		}
		line := map[string]any{}
		if err := json.Unmarshal([]byte(next), &line); err != nil {
			l.t.Fatalf("log line %q: %v", next, err)
		}
		message, _ := line["message"].(string)
		for i, text := range texts {
			if lines[i] == nil && strings.Contains(message, text) {
				lines[i] = line
			}
		}
	}
	return lines
}

// rest waits for the end of the log, and returns the lines that until has not read.
func (l *daemonLog) rest() string {
	l.t.Helper()
	var rest strings.Builder
	for timeout := time.After(patience); ; {
		line, ok := l.line(timeout)
		if !ok {
			return rest.String()
		}
		rest.WriteString(line)
	}
}

// all returns the log so far.
func (l *daemonLog) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// A daemon that logs more than a pipe holds does not block.
func TestLogIsRead(t *testing.T) {
	in, out := io.Pipe() // it has no buffer
	l := readLog(t, in)
	const lines = 10_000
	for range lines {
		if _, err := io.WriteString(out, `{"message":"one of many"}`+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(out, `{"message":"the last","n":7}`); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if got := l.until("last"); got["n"] != 7.0 {
		t.Errorf("the last line is %v", got)
	}
	if rest := l.rest(); rest != "" {
		t.Errorf("behind the last line there is %q", rest)
	}
	if n := strings.Count(l.all(), "many"); n != lines {
		t.Errorf("%d lines were kept; want %d", n, lines)
	}
}
