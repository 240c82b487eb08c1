package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/internal/systemd"
)

// manager is a service manager. It reads its socket as long as the test lasts, since whoever tells
// it something waits where too much is unread.
type manager struct {
	t    *testing.T
	told chan string
}

func newManager(t *testing.T) (m manager, name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m = manager{t, make(chan string, 100_000)} // more than is told while a test lasts
	go func() {
		buf := make([]byte, 1000)
		for n, err := conn.Read(buf); err == nil; n, err = conn.Read(buf) {
			m.told <- string(buf[:n])
		}
	}()
	return m, name
}

// until returns the states told up to the wanted one.
func (m manager) until(want string) (before []string) {
	m.t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case told := <-m.told:
			if told == want {
				return before
			}
			before = append(before, told)
		case <-timeout:
			m.t.Fatalf("told %v; want %s", before, want)
		}
	}
}

func TestServiceManager(t *testing.T) {
	m, name := newManager(t)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "200000")
	t.Setenv("WATCHDOG_PID", "")
	c := startChild(t, settings(t, ""))
	m.until("READY=1")
	dialSpider(t, c.spiders).conn.Close() // the listener was up
	for range 3 {
		m.until("WATCHDOG=1")
	}
	c.signal(syscall.SIGHUP)
	m.until("RELOADING=1")
	if before := m.until("READY=1"); strings.Contains(strings.Join(before, " "), "STOPPING") {
		t.Errorf("told %v before it was ready again", before)
	}
	c.signal(syscall.SIGTERM)
	m.until("STOPPING=1")
	if state := c.wait(); state.ExitCode() != 0 {
		t.Errorf("ended with %v", state)
	}
}

// Without a watchdog that waits, nothing is told but what happens.
func TestServiceManagerWithoutWatchdog(t *testing.T) {
	m, name := newManager(t)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "")
	c := startChild(t, settings(t, ""))
	if before := m.until("READY=1"); len(before) > 0 {
		t.Errorf("told %v; nobody waits for a watchdog", before)
	}
	c.signal(syscall.SIGTERM)
	if before := m.until("STOPPING=1"); len(before) > 0 {
		t.Errorf("told %v; nobody waits for a watchdog", before)
	}
	c.wait()
}

// An owner that hangs is not vouched for; one that answers again is.
func TestWatchdogAsksTheOwner(t *testing.T) {
	m, name := newManager(t)
	t.Setenv("NOTIFY_SOCKET", name)
	s := server{manager: systemd.FromEnv(), log: zerolog.Nop()}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	asked := 0
	s.watchdog(ctx, 2*time.Millisecond, func(within context.Context) error {
		asked++
		switch asked {
		case 1, 2, 3: // hangs
			<-within.Done()
			s.tell(fmt.Sprint("HUNG=", asked))
			return within.Err()
		case 4:
			return nil
		}
		end()
		return within.Err()
	})
	if before := m.until("WATCHDOG=1"); fmt.Sprint(before) != "[HUNG=1 HUNG=2 HUNG=3]" {
		t.Errorf("told %v before the owner answered", before)
	}
}
