// Command testreport reads what "go test -json" prints, and prints it as "go test" does: a line for
// each package, and what tests that failed have said. At the end it names each test that was
// skipped, and why: a package whose tests were all skipped is otherwise as "ok" as one whose tests
// passed.
//
// Its exit status is 1 if a test or a build failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// report gathers what tests say until they end.
type report struct {
	out     io.Writer
	said    map[[2]string]*strings.Builder // by package and test
	skipped map[string][]string            // tests by reason
	ran     int
	failed  int  // tests
	broken  bool // a package has failed or could not be built
}

func main() {
	status, err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	os.Exit(status)
}

func run(in io.Reader, out io.Writer) (status int, err error) {
	r := report{out: out, said: map[[2]string]*strings.Builder{}, skipped: map[string][]string{}}
	began := time.Now()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return 1, err
		}
	}
	r.end(time.Since(began))
	if r.failed > 0 || r.broken || r.ran == 0 {
		return 1, nil
	}
	return 0, nil
}

// line takes an event. What is none, go's own words, is printed as it is.
func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		r.out.Write(line)
		return
	}
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		io.WriteString(r.out, e.Output)
	case "build-fail":
		r.broken = true
	case "output":
		if r.said[key] == nil {
			r.said[key] = &strings.Builder{}
		}
		r.said[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		r.ended(e, key)
		delete(r.said, key)
	}
}

func (r *report) ended(e event, key [2]string) {
	said := ""
	if r.said[key] != nil {
		said = r.said[key].String()
	}
	if e.Test == "" { // the package
		if e.Action == "fail" {
			r.broken = true
			r.unended(e.Package)
			io.WriteString(r.out, said)
			return
		}
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ") {
				io.WriteString(r.out, line)
			}
		}
		return
	}
	r.ran++
	switch e.Action {
	case "fail":
		r.failed++
		io.WriteString(r.out, said)
	case "skip":
		r.skipped[reason(said)] = append(r.skipped[reason(said)], e.Package+"."+e.Test)
	}
}

// unended prints what the tests of a package have said that had begun when its process ended: after a
// panic or a timeout no event tells of their ends.
func (r *report) unended(of string) {
	for _, key := range slices.SortedFunc(maps.Keys(r.said), func(a, b [2]string) int {
		return strings.Compare(b[1], a[1]) // subtests first, as go test has it
	}) {
		if key[0] != of || key[1] == "" {
			continue
		}
		said := r.said[key].String()
		delete(r.said, key)
		if strings.HasSuffix(said, "=== PAUSE "+key[1]+"\n") {
			continue // it waited for its turn
		}
		r.ran++
		r.failed++
		fmt.Fprintf(r.out, "%s--- FAIL: %s (it did not end)\n", said, key[1])
	}
}

// reason is what a skipped test said: the last line, without file and line number.
func reason(said string) string {
	why := "no reason given"
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				line = text
			}
		}
		why = line
	}
	return why
}

func (r *report) end(took time.Duration) {
	n := 0
	for _, tests := range r.skipped {
		n += len(tests)
	}
	if n > 0 {
		fmt.Fprintf(r.out, "\nSkipped:\n")
	}
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[why]
		fmt.Fprintf(r.out, "  %s\n", why)
		for _, name := range tests[:min(len(tests), 3)] {
			fmt.Fprintf(r.out, "    %s\n", name)
		}
		if more := len(tests) - 3; more > 0 {
			fmt.Fprintf(r.out, "    and %d more\n", more)
		}
	}
	fmt.Fprintf(r.out, "\n%d tests, %d failed, %d skipped, in %v\n", r.ran, r.failed, n, took.Round(time.Second))
}
