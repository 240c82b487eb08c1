package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is a line of the table.
type row struct {
	what     string
	target   string // "": none is set
	measured string
	met      verdict
	beside   string // the same measure of something simpler in the same run, and the ratio
	how      string
}

// verdict tells whether a target is met.
type verdict string

const (
	noTarget verdict = ""
	met      verdict = "yes"
	missed   verdict = "**no**"
)

func judge(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// String returns the row in Markdown.
func (r row) String() string {
	cells := []string{r.what, r.target, r.measured, string(r.met), r.beside, r.how}
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func printHead(out io.Writer) error {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s, %d cores, %s/%s, %s; load before: %.4s\n\n| what | target | measured "+
		"| met | beside | how |\n| --- | --- | --- | --- | --- | --- |\n",
		processor("/proc/cpuinfo"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), load)
	return err
}

// processor returns the name of this machine's processor, from Linux' cpuinfo.
func processor(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t: ")
		}
	}
	return "unknown processor"
}

// count formats a number with commas between thousands.
func count[N int | uint64 | float64](n N) string {
	s := fmt.Sprintf("%.0f", float64(n))
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percentile returns the value that the given share of sorted values does not exceed; 0 if there
// are none.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// spread summarises a set of durations.
type spread struct {
	Count               int
	P50, P99, P999, Max time.Duration
}

// spreadOf sorts the durations.
func spreadOf(d []time.Duration) spread {
	slices.Sort(d)
	return spread{
		Count: len(d),
		P50:   percentile(d, 0.5), P99: percentile(d, 0.99), P999: percentile(d, 0.999),
		Max: percentile(d, 1),
	}
}
