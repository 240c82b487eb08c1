package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// worker is a spider that fetches nothing: each document is done at once.
type worker struct {
	done  atomic.Int64
	twice atomic.Int64 // documents that were sent again
	ended chan error
}

func work(conn net.Conn, token string) *worker {
	w := &worker{ended: make(chan error, 1)}
	go func() { w.ended <- w.run(conn, token) }()
	return w
}

func (w *worker) run(conn net.Conn, token string) error {
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	fmt.Fprintf(out, "AUTH %s\n", token)
	seen := map[string]bool{}
	for {
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		trans, rest, _ := strings.Cut(line, " ")
		doc, _, _ := strings.Cut(rest, " ")
		if seen[doc] {
			w.twice.Add(1)
		}
		seen[doc] = true
		fmt.Fprintf(out, "%s DONE 200\n", trans)
		w.done.Add(1)
	}
}

// goesOn waits until more than so many documents are done, on a machine that may be slow.
func (w *worker) goesOn(t *testing.T, done int64) {
	t.Helper()
	for end := time.Now().Add(patience); w.done.Load() <= done; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no document is done any more after %d", done)
		}
	}
}

// rate is how many documents a second are done: the median over the parts of a while.
func (w *worker) rate(within time.Duration) float64 {
	const parts = 20
	var rates []float64
	for range parts {
		before, began := w.done.Load(), time.Now()
		time.Sleep(within / parts)
		rates = append(rates, float64(w.done.Load()-before)/time.Since(began).Seconds())
	}
	slices.Sort(rates)
	return rates[parts/2]
}

// memoryOf is what the kernel says of a process: VmRSS, now, or VmHWM, at most so far; bytes.
func memoryOf(t *testing.T, c *child, what string) int {
	t.Helper()
	m := regexp.MustCompile(what + `:\s+(\d+) kB`).FindStringSubmatch(proc(t, c, "status"))
	if m == nil {
		t.Fatalf("no %s", what)
	}
	n, _ := strconv.Atoi(m[1])
	return n << 10
}

// cpuOf is how long a process has worked, in user and system mode.
func cpuOf(t *testing.T, c *child) time.Duration {
	t.Helper()
	text := proc(t, c, "stat")
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	const utime, stime = 14 - 3, 15 - 3 // in proc(5), behind pid and name
	ticks := 0
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			t.Fatalf("stat: %q", text)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // as Linux counts them for everybody
}

func proc(t *testing.T, c *child, file string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
