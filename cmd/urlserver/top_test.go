package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newCrawl is a daemon that holds URLs of some hosts, which have to wait.
func newCrawl(t *testing.T) *daemon {
	t.Helper()
	file := write(t, "urlserver.toml", strings.Replace(fmt.Sprintf(base, ""), "= 1000", "= 0.001", 1))
	d := startDaemon(t, file)
	list := ""
	for host := 1; host <= 3; host++ {
		for n := range host {
			list += fmt.Sprintf("http://127.0.0.%d/%d\n", host, n)
		}
	}
	command(t, list, "put", "--at", d.at, "-").want(t, 0, `"new":6`, "")
	d.shows("/api/status", `"held":6,`)
	return d
}

func TestTopPrintsLines(t *testing.T) {
	d := newCrawl(t)
	r := command(t, "", "top", "--at", d.at, "--lines", "2")
	r.want(t, 0, "not ready", "")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "sent/s 0.0") ||
		!strings.Contains(lines[1], "held 6") || strings.Contains(r.out, "\x1b") {
		t.Errorf("output %q", r.out)
	}
}

func TestTopFails(t *testing.T) {
	command(t, "", "top", "--at", "http://127.0.0.1:1").want(t, 1, "", "is the daemon running")
	command(t, "", "top", "--lines", "-1").want(t, 2, "", "--lines")
	command(t, "", "top", "x").want(t, 2, "", "usage")
	d := startDaemon(t, settings(t, `http.token = "secret"`))
	command(t, "", "top", "--at", d.at).want(t, 1, "", "--token")
	command(t, "", "top", "--at", d.at, "--token", "secret", "-n", "1").want(t, 0, "spiders 0", "")
	// The daemon ends while it is watched.
	var errs strings.Builder
	code := run(t.Context(), []string{"top", "--at", d.at, "--token", "secret"}, strings.NewReader(""),
		writer(d.end), &errs)
	result{code, "", errs.String()}.want(t, 1, "", "ended the stream")
}

// writer does something when it is written to.
type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

// pty is the far side of a terminal, and what came out of it.
type pty struct {
	t     *testing.T
	far   *os.File
	near  *os.File
	cmd   *exec.Cmd
	ended chan error

	mu   sync.Mutex // guards text
	text string
}

// openPTY makes a terminal of 100 by 30, and has the command run on it.
func openPTY(t *testing.T, args ...string) *pty {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: top is not tried on one: %v", err)
	}
	t.Cleanup(func() { far.Close() })
	if err := unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	near, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	p := &pty{t: t, far: far, near: near, ended: make(chan error, 1)}
	p.size(100, 30)
	p.cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = near, near, near
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read()
	go func() { p.ended <- p.cmd.Wait() }()
	return p
}

func (p *pty) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.far.Read(buf)
		p.mu.Lock()
		p.text += string(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pty) size(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.far.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
	if p.cmd != nil {
		p.cmd.Process.Signal(syscall.SIGWINCH) // it has another controlling terminal, or none
	}
}

func (p *pty) press(keys string) {
	p.t.Helper()
	if _, err := p.far.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// shows waits until a screen has all of these in it, and returns it.
func (p *pty) shows(texts ...string) string {
	p.t.Helper()
	return p.until(fmt.Sprintf("has %q", texts), func(screen string) bool {
		for _, want := range texts {
			if !strings.Contains(screen, want) {
				return false
			}
		}
		return true
	})
}

// until waits for a screen that is as wanted, and forgets those before.
func (p *pty) until(what string, wanted func(screen string) bool) string {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		screens := strings.Split(p.text, toTop)
		for i, screen := range screens[1:] {
			if strings.Contains(screen, clearBelow) && wanted(screen) {
				p.text = toTop + strings.Join(screens[1+i:], toTop)
				p.mu.Unlock()
				return screen
			}
		}
		p.mu.Unlock()
		if time.Now().After(end) {
			p.t.Fatalf("no screen %s; the last is\n%s", what, screens[len(screens)-1])
		}
	}
}

func TestTopOnATerminal(t *testing.T) {
	d := newCrawl(t)
	p := openPTY(t, "top", "--at", d.at)
	screen := p.shows("URL server  up", "NOT READY", "no spider is connected", "HELDv", "127.0.0.3")
	if strings.Index(screen, "127.0.0.3") > strings.Index(screen, "127.0.0.1 ") {
		t.Errorf("not sorted by what is held:\n%s", screen)
	}
	p.press("d")
	if screen = p.shows("HELD^", "127.0.0.3"); strings.Index(screen, "127.0.0.3") < strings.Index(screen,
		"127.0.0.1 ") {
		t.Errorf("not sorted the other way round:\n%s", screen)
	}
	p.press("s")
	p.shows("SLOTv")
	p.press("/127.0.0.2")
	p.shows("search: 127.0.0.2_")
	p.press("9\x7f\r")
	if screen = p.shows("127.0.0.2: it may not be asked yet",
		"(127.0.0.2, esc: all)"); strings.Contains(screen, "127.0.0.3") {
		t.Errorf("what was not searched for is there:\n%s", screen)
	}
	p.press("\x1b")
	p.shows("127.0.0.3", "/: search   space", "3 of 3 slots in use")
	p.press("d")
	p.shows("HELDv")
	p.press("\x1b[B")
	p.press("\r")
	p.shows("127.0.0.2: it may not be asked yet")
	p.press("\x1b")
	p.press("?")
	p.shows("up, down, k, j  move the cursor", "Any key goes back.")
	p.press("x")
	p.press(" ")
	p.shows("view held")
	p.press(" ")

	p.press("P")
	p.shows("pause sending, for all hosts? y/n")
	p.press("n")
	p.shows("q: quit")
	command(t, "", "status", "--at", d.at, "--json").want(t, 0, `"paused":false`, "")
	p.press("P")
	p.press("y")
	p.shows("sending is paused", "PAUSED")
	command(t, "", "status", "--at", d.at, "--json").want(t, 0, `"paused":true`, "")

	p.size(40, 10)
	p.until("is as high as the terminal", func(screen string) bool { return strings.Count(screen, "\r\n") == 9 })
	p.press("q")
	if err := <-p.ended; err != nil {
		t.Errorf("q: %v", err)
	}
	p.until("ends with the other one", func(screen string) bool { return strings.Contains(screen, leaveScreen) })
}

// strip is a line without what the terminal is told.
func strip(text string) string {
	for {
		from := strings.IndexByte(text, 0x1b)
		if from < 0 {
			return text
		}
		to := strings.IndexAny(text[from:], "mhlHJK")
		if to < 0 {
			return text[:from]
		}
		text = text[:from] + text[from+to+1:]
	}
}

// Every screen fits, whatever it has to show.
func TestScreensFit(t *testing.T) {
	v := view{
		status: &liveStatus{NotReady: []string{strings.Repeat("é", 200)}},
		top:    &top{BlockedAll: 3},
		found:  "a\x07b\u009b\x1b]0;m" + strings.Repeat("x", 300),
	}
	for i := range 40 {
		v.top.Busiest = append(v.top.Busiest,
			topSlot{Slot: uint32(i), Group: strings.Repeat("2001:", 8), Hosts: []string{strings.Repeat("h", 253)}})
	}
	for _, size := range [][2]int{{1, 1}, {20, 5}, {80, 24}, {200, 60}} {
		screen := v.draw(size[0], size[1], time.Now())
		lines := strings.Split(strings.TrimPrefix(screen, toTop), "\r\n")
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, text := range lines {
			if n := len([]rune(strip(text))); n > size[0] {
				t.Errorf("%v: %d columns: %q", size, n, text)
			}
		}
		if strings.ContainsAny(screen, "\x07\u009b") || strings.Contains(screen, "\x1b]") {
			t.Errorf("%v: control characters get through", size)
		}
	}
}

// At 80 columns each column is there, and the hosts' beginnings.
func TestScreenOf80Columns(t *testing.T) {
	v := view{status: &liveStatus{}, top: &top{Busiest: []topSlot{
		{Slot: 4095, Group: "192.0.2.100", Hosts: []string{"www.example.eu"}, Held: 64, Queued: 63,
			Active: 1, Gap: 3600, HeldBy: "address"},
	}}}
	v.status.Slots.Used = 7
	n, err := parseNews("status",
		[]byte(`{"slots":{"used":7},"levels":{"site":{"waiting":3,"backoffs":6,"retry_after":7},`+
			`"address":{"waiting":4,"backoffs":8,"backing_off":1},"network":{"waiting":5}},`+
			`"statuses":{"2xx":12345678,"3xx":1234567,"4xx":123456,"5xx":12345,"none":1234,"dns":9},`+
			`"index":{"scheduled":123456789,"in_transit":65536,"completed":12345678}}`))
	if err != nil {
		t.Fatal(err)
	}
	v.status = n.status
	screen := strip(v.draw(80, 24, time.Now()))
	for _, want := range []string{"   4095 192.0.2.100      1     63     64  1h0m0s     now address  " +
		"www.example.eu", "1 of 7 slots in use",
		"status 12345678 2xx, 1234567 3xx, 123456 4xx, 12345 5xx, 1234 none\r\n",
		"index  123456789 scheduled, 65536 in transit, 12345678 completed\r\n",
		"GAP", "NEXT", "LEVEL", "HOSTS",
		"waits  3 hosts for their site, 4 for their address, 5 for their shared network\r\n",
		"backed off  6 of sites, 7 with Retry-After; 8 of addresses, 1 back off now\r\n",
		"?: keys"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q on\n%s", want, screen)
		}
	}
	v.found = strings.Repeat("because ", 20)
	if screen = strip(v.draw(80, 24, time.Now())); strings.Count(screen, "because") != 20 {
		t.Errorf("the explanation is cut:\n%s", screen)
	}
}

func TestRates(t *testing.T) {
	var r rates
	add := func(up float64, sent uint64) string {
		s := &liveStatus{}
		s.Uptime, s.Sent = up, sent
		r.add(s)
		return r.sent()
	}
	for i, want := range []string{"-", "10.0", "10.0", "10.0", "10.0", "10.0", "10.0"} {
		if got := add(float64(i), uint64(10*i)); got != want {
			t.Errorf("after %d s: %s; want %s", i, got, want)
		}
	}
	if got := add(7, 130); got != "22.0" { // 110 in five seconds
		t.Errorf("faster: %s", got)
	}
	if got := add(1, 5); got != "-" {
		t.Errorf("after a new start: %s", got)
	}
}

// The help of the keys is whole on a terminal of 80 columns.
func TestKeysFit(t *testing.T) {
	for _, line := range keysHelp {
		if n := len(strip(line)); n > 80 {
			t.Errorf("%q has %d columns; want at most 80", line, n)
		}
	}
}
