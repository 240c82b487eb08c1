package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"urlserver/urlserver/engine"
)

// TestMain runs the test program in the roles that bench starts child processes for.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-as" {
		if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
			os.Stderr.WriteString("bench: " + err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testBench(t *testing.T) *bench {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{self: self, errs: t.Output()}
}

func TestRowIsMarkdown(t *testing.T) {
	r := row{what: "a | b", target: "≥ 1", measured: "2", met: judge(true), how: "so"}
	if got, want := r.String(), `| a \| b | ≥ 1 | 2 | yes |  | so |`; got != want {
		t.Errorf("row = %s; want %s", got, want)
	}
	if got := judge(false); got != missed {
		t.Errorf("judge(false) = %q; want %q", got, missed)
	}
}

func TestHeadNamesTheMachine(t *testing.T) {
	var out strings.Builder
	if err := printHead(&out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 5 ||
		strings.Count(lines[2], "|") != strings.Count(lines[3], "|") {
		t.Errorf("head = %q; want a line on the machine, an empty one, and two of the table", out.String())
	}
}

func TestProcessor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	if err := os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: Some Processor 3\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if got := processor(file); got != "Some Processor 3" {
		t.Errorf("processor = %q", got)
	}
	if got := processor(file + ".absent"); got != "unknown processor" {
		t.Errorf("processor of no file = %q", got)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1_234_567.4: "1,234,567",
		-1234: "-1,234", -123: "-123"} {
		if got := count(n); got != want {
			t.Errorf("count(%v) = %s; want %s", n, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	var d []time.Duration
	for i := range 1000 {
		d = append(d, time.Duration((i*7)%1000)) // 0 to 999, mixed
	}
	want := spread{Count: 1000, P50: 500, P99: 990, P999: 999, Max: 999}
	if got := spreadOf(d); got != want {
		t.Errorf("spread = %+v; want %+v", got, want)
	}
	if got := spreadOf(nil); got != (spread{}) {
		t.Errorf("spread of nothing = %+v", got)
	}
}

func TestHistogramBounds(t *testing.T) {
	var before engine.Histogram
	before.Observe(time.Minute)
	after := before
	for range 98 {
		after.Observe(50 * time.Microsecond)
	}
	after.Observe(3 * time.Millisecond)
	after.Observe(time.Hour)
	h := subtract(after, before)
	for share, want := range map[float64]time.Duration{0.5: 100 * time.Microsecond,
		0.98: 100 * time.Microsecond, 0.99: 5 * time.Millisecond, 1: time.Hour} {
		if got := bound(h, share); got != want {
			t.Errorf("bound(%v) = %v; want %v", share, got, want)
		}
	}
}

func TestStatusBytes(t *testing.T) {
	cases := []struct {
		name, status string
		want         int
		bad          bool
	}{
		{name: "there", status: "VmHWM:\t 9 kB\nVmRSS:\t   12 kB\nThreads: 1\n", want: 12 << 10},
		{name: "absent", status: "VmHWM:\t 9 kB\n", bad: true},
		{name: "other unit", status: "VmRSS:\t 9 MB\n", bad: true},
		{name: "no number", status: "VmRSS:\t x kB\n", bad: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := statusBytes(c.status, "VmRSS:")
			if (err != nil) != c.bad || !c.bad && got != c.want {
				t.Errorf("statusBytes = %d, %v; want %d, error %v", got, err, c.want, c.bad)
			}
		})
	}
}

var sink []byte

func TestCollectSeesTheHeap(t *testing.T) {
	u, err := readUsage()
	if err != nil || u.RSS <= 0 || u.PeakRSS < u.RSS {
		t.Fatalf("usage = %+v, %v", u, err)
	}
	empty := collect()
	sink = make([]byte, 64<<20)
	full := collect()
	sink = nil
	if grown := full.Live - empty.Live; grown < 63<<20 || grown > 70<<20 {
		t.Errorf("heap grew by %d; want 64 MiB", grown)
	}
	if full.Wall <= 0 || full.Pause <= 0 || full.Pause > full.Wall {
		t.Errorf("collection = %+v", full)
	}
}

func TestOnlyKnownRoles(t *testing.T) {
	err := run(t.Context(), []string{"-as", "nobody"}, strings.NewReader("{}"), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no such role") {
		t.Errorf("run = %v", err)
	}
}

func TestPlayAnswersEachRequest(t *testing.T) {
	in := strings.NewReader(`{"Addrs": 1} {"Do": "sing"} {"Do": "sing"}`)
	var out bytes.Buffer
	if err := play(t.Context(), "dns", in, &out); err != nil {
		t.Fatal(err)
	}
	replies := json.NewDecoder(&out)
	for i := range 3 {
		var r reply
		if err := replies.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if refused := strings.Contains(r.Err, "sing"); refused != (i > 0) {
			t.Errorf("reply %d = %+v", i, r)
		}
	}
}

func TestPlayEndsWithABadJob(t *testing.T) {
	if err := play(t.Context(), "dns", strings.NewReader("no JSON"), io.Discard); err == nil {
		t.Error("a job that is no JSON was taken up")
	}
}

func TestChildTellsWhatWentWrong(t *testing.T) {
	b := testBench(t)
	if _, err := b.start(t.Context(), "spider", &spider{Addr: "127.0.0.1:0", Conns: 1}, nil); err == nil ||
		!strings.Contains(err.Error(), "child process spider") {
		t.Errorf("a spider without a daemon: %v", err)
	}
	var addr string
	c, err := b.start(t.Context(), "dns", &names{Addrs: 1}, &addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ask("sing", "", nil); err == nil ||
		!strings.Contains(err.Error(), `request "sing": not known`) {
		t.Errorf("ask = %v", err)
	}
	if err := c.stop(); err != nil {
		t.Errorf("stop = %v", err)
	}
}

func TestTakeAllTakesTheChosen(t *testing.T) {
	b := testBench(t)
	b.errs = io.Discard
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if err := takeAll(ctx, b, regexp.MustCompile("^none$"), &out); err != nil {
		t.Errorf("takeAll of none = %v", err)
	}
	if err := takeAll(ctx, b, regexp.MustCompile("^idle$"), &out); !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), "idle: ") {
		t.Errorf("takeAll of idle, ended at once = %v", err)
	}
}
