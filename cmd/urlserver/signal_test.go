package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// child is a command in a process of its own.
type child struct {
	t       *testing.T
	cmd     *exec.Cmd
	log     *daemonLog
	errs    io.Closer // standard error
	spiders string    // where they dial, if it is a daemon
}

// startChild starts a daemon.
func startChild(t *testing.T, file string) *child {
	t.Helper()
	c := startCommand(t, "urlserver", "serve", file)
	c.spiders = c.log.until("listening for spiders")["address"].(string)
	return c
}

// startCommand starts a command that TestMain knows.
func startCommand(t *testing.T, name string, args ...string) *child {
	t.Helper()
	cmd := commandChild(t, name, args...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{t: t, cmd: cmd, log: readLog(t, errs), errs: errs}
}

// commandChild returns a command that TestMain knows, for a process of its own.
func commandChild(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	return cmd
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// wait waits for the end of the log and of the process, and returns how that ended.
func (c *child) wait() *os.ProcessState {
	c.t.Helper()
	c.log.rest()
	if err := c.cmd.Wait(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			c.t.Fatal(err)
		}
	}
	return c.cmd.ProcessState
}

func TestReload(t *testing.T) {
	file := settings(t, "")
	c := startChild(t, file)
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.signal(syscall.SIGHUP)
	}
	text := fmt.Sprintf(base, "")

	rewrite(strings.Replace(text, "= 1000", "= 500", 1))
	if got := fmt.Sprint(c.log.until("settings read again")["applied"]); got != "[Req_Host_Per_Sec]" {
		t.Errorf("applied is %s", got)
	}

	rewrite("x = 1\nQueue_Len = 0\n")
	line := c.log.until("nothing is changed")
	if got := fmt.Sprint(line["mistakes"]); !strings.Contains(got, ":1: x") ||
		!strings.Contains(got, ":2: Queue_Len") || line["level"] != "error" {
		t.Errorf("a bad file: %v", line)
	}
	rewrite(text + "[docindex]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\nseeds = [\"x\"]\n")
	if got := fmt.Sprint(c.log.until("nothing is changed")["mistakes"]); !strings.Contains(got,
		"docindex.seeds") {
		t.Errorf("what does not go together: %s", got)
	}

	rewrite(strings.Replace(text, "= 1000", "= 500", 1) + "Queue_Count = 7\nlog.level = \"debug\"\n")
	if got := fmt.Sprint(c.log.until("settings read again")["applied"]); got != "[log.level]" {
		t.Errorf("applied is %s; the bad files should have changed nothing", got)
	}
	if got := fmt.Sprint(c.log.until("only after a restart")["settings"]); got != "[Queue_Count]" {
		t.Errorf("for a restart: %s", got)
	}
	rewrite(strings.Replace(text, "= 1000", "= 500", 1) +
		"log.level = \"debug\"\n[docindex]\nrefetch_after = { error = \"1h\" }\n")
	if got := fmt.Sprint(c.log.until("only after a restart")["settings"]); got != "[docindex.refetch_after.error]" {
		t.Errorf("for a restart: %s", got)
	}
	dialSpider(t, c.spiders).conn.Close()
	if line := c.log.until("connection closed"); line["level"] != "debug" {
		t.Errorf("at level debug: %v", line)
	}

	rewrite(text + "Queue_Count = 7\nlog.level = \"error\"\n") // silent from here on
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.signal(syscall.SIGTERM)
	if state := c.wait(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
}

func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skip("it is ignored here, and so by the daemon")
			}
			c := startChild(t, settings(t, ""))
			c.signal(s)
			c.log.until("stopping")
			c.log.until("stopped")
			if state := c.wait(); state.ExitCode() != 0 {
				t.Errorf("ended with %v", state)
			}
		})
	}
}

// What is at a spider is waited for; its outcome counts.
func TestStopWaitsForSpiders(t *testing.T) {
	c := startChild(t, settings(t, fmt.Sprintf("docindex.seeds = [%q]",
		write(t, "seeds.txt", "http://127.0.0.1/a\nhttp://127.0.0.1/b\n"))))
	sp := dialSpider(t, c.spiders)
	trans := sp.next()[0]
	c.signal(syscall.SIGTERM)
	c.log.until("stopping")
	sp.done(trans)
	if _, err := sp.in.ReadString('\n'); err == nil {
		t.Error("something was sent while stopping")
	}
	if state := c.wait(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
}

// TestLogReaderEnds: a daemon whose log nobody reads any more goes on, and stops as ever.
func TestLogReaderEnds(t *testing.T) {
	c := startChild(t, settings(t, fmt.Sprintf("docindex.seeds = [%q]",
		write(t, "seeds.txt", "http://127.0.0.1/a\n"))))
	if err := c.errs.Close(); err != nil {
		t.Fatal(err)
	}
	sp := dialSpider(t, c.spiders) // which is logged
	sp.done(sp.next()[0])
	c.signal(syscall.SIGTERM)
	if state := c.wait(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
}

// TestLogReaderHangs: a daemon whose log is not closed and not read either, as by a terminal after Ctrl-S, works
// and stops as ever.
func TestLogReaderHangs(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := commandChild(t, "urlserver", "serve", settings(t, "log.level = \"debug\""))
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	at := map[string]string{}
	for lines := bufio.NewScanner(in); at["listening for spiders"] == "" || at["listening for HTTP"] == ""; {
		var line struct{ Message, Address string }
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &line) != nil {
			t.Fatalf("log line %q, %v", lines.Bytes(), lines.Err())
		}
		at[line.Message] = line.Address
	}
	for range 500 { // each is logged in 200 bytes or more; a pipe holds 64 KiB
		dialSpider(t, at["listening for spiders"]).conn.Close()
	}
	sp := dialSpider(t, at["listening for spiders"])
	d := &daemon{t: t, at: "http://" + at["listening for HTTP"]}
	// Until none of the others can be sent the URL: three that are lost with it would end it.
	d.shows("/api/status", fmt.Sprintf(`"spiders":[{"addr":%q,"in_flight":0,"sent":0,"done":0}]`, sp.conn.LocalAddr()))
	putOf(t, d.at, `{"url":"http://127.0.0.1/a"}`)
	sp.done(sp.next()[0])
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if rest, err := io.ReadAll(in); err != nil || strings.Contains(string(rest), `"stopped"`) {
		t.Errorf("the pipe held all of the log, %d bytes, %v; want it full", len(rest), err)
	}
}

// TestSecondSignalEndsAtOnce: a daemon that waits for its spiders ends at a signal some time after the first.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	c := startChild(t, settings(t, fmt.Sprintf("docindex.seeds = [%q]",
		write(t, "seeds.txt", "http://127.0.0.1/a\n"))))
	dialSpider(t, c.spiders).next() // never answered
	c.signal(syscall.SIGTERM)
	c.log.until("stopping")
	go func() { // those that come too soon count as the first
		for c.cmd.Process.Signal(syscall.SIGTERM) == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	status, ok := c.wait().Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v; want by the signal", status)
	}
}

// TestStopWhileIndexOpens: a daemon that waits for its index to open ends with the first SIGTERM. The index waits for
// a log that is a pipe to which nobody writes.
func TestStopWhileIndexOpens(t *testing.T) {
	path := t.TempDir()
	for name, create := range map[string]func(string) error{
		"marker.manifest.000001.MANIFEST-000001": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"000002.log":                             func(file string) error { return syscall.Mkfifo(file, 0o600) },
	} {
		if err := create(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := startCommand(t, "urlserver", "serve", settings(t, "[docindex]\nkind = \"disk\"\npath = \""+path+"\"\n"))
	writer := make(chan *os.File)
	go func() { // opens the pipe when the daemon has
		w, err := os.OpenFile(filepath.Join(path, "000002.log"), os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
		}
		writer <- w
	}()
	defer (<-writer).Close()
	c.signal(syscall.SIGTERM)
	c.log.until("the index was not open yet")
	if state := c.wait(); !state.Success() {
		t.Errorf("it ended with %v", state)
	}
}
