package systemd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestTell(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"),
		"@urlserver-test-" + strconv.Itoa(os.Getpid())} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		if err := FromEnv().Notify(Ready); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		l.SetReadDeadline(time.Now().Add(5 * time.Minute))
		n, err := l.Read(buf)
		if got := string(buf[:n]); got != Ready || err != nil {
			t.Errorf("%s was told %q, %v; want %q", name, got, err, Ready)
		}
	}
}

// TestNotifyDoesNotBlock: a manager that does not read its socket does not block the daemon for
// ever.
func TestNotifyDoesNotBlock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	for n := range 100_000 {
		if err := FromEnv().Notify(Watchdog); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after %d datagrams: %v; want the deadline", n, err)
			}
			return
		}
	}
	t.Skip("this system keeps 100,000 datagrams")
}

func TestTellNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := FromEnv().Notify(Ready); err != nil {
		t.Errorf("without a socket: %v", err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	if err := FromEnv().Notify(Ready); err == nil {
		t.Error("a socket that is not there: no error")
	}
}

func TestWatchdogInterval(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{},
		{usec: "30000000", want: 30 * time.Second},
		{usec: "30000000", pid: own, want: 30 * time.Second},
		{usec: "30000000", pid: own + "0"},
		{usec: "0"},
		{usec: "-1"},
		{usec: "soon"},
		{usec: "9223372036854775807"},
	} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got := WatchdogInterval(); got != c.want {
			t.Errorf("WATCHDOG_USEC=%q WATCHDOG_PID=%q: %v; want %v", c.usec, c.pid, got, c.want)
		}
	}
}
