package spider

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// childAddr is the environment variable that makes the test binary a spider, which connects to the
// address in it.
const childAddr = "SPIDER_TEST_DIAL"

const childTimeout = 4 * time.Second // status timeout of the spider that is stopped

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		s := New(Config{StatusTimeout: childTimeout})
		if err := s.Dial(context.Background(), addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestStoppedSpiderFetchesNothingOld stops a spider's process for longer than the status timeout
// while lines are in its socket. When it continues, it fetches none of them. It connects again and
// fetches the lines that it receives then.
func TestStoppedSpiderFetchesNothingOld(t *testing.T) {
	const old = 200
	var mu sync.Mutex
	asked := map[string]int{}
	addr, port := web(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childAddr+"="+l.Addr().String())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()

	url := func(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }
	conn := acceptSpider(t, l)
	converse(t, conn, fetchLine(0, addr, url("/first")))
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var state syscall.WaitStatus // a busy machine may let it run for a while after the signal
	if _, err := syscall.Wait4(child.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil ||
		!state.Stopped() {
		t.Fatalf("the spider does not stop: %v, %v", state, err)
	}
	for i := range old {
		if _, err := io.WriteString(conn, fetchLine(i, addr, url(fmt.Sprintf("/old/%d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(childTimeout + childTimeout/4)
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	again := acceptSpider(t, l)
	converse(t, again, fetchLine(0, addr, url("/new")))

	mu.Lock()
	defer mu.Unlock()
	for path, n := range asked {
		if strings.HasPrefix(path, "/old/") {
			t.Errorf("%s was asked for %d times after the process had stood still", path, n)
		}
	}
	if asked["/first"] == 0 || asked["/new"] != 1 {
		t.Errorf("asked for %v; want /first and /new", asked)
	}
}

func acceptSpider(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Minute))
	conn, err := l.Accept()
	if err != nil {
		t.Fatalf("the spider does not connect: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// converse sends a line and waits for its DONE.
func converse(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	if _, err := io.WriteString(conn, line); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	trans, _, _ := strings.Cut(line, " ")
	for in := bufio.NewScanner(conn); in.Scan(); {
		if strings.HasPrefix(in.Text(), trans+" DONE") {
			return
		}
	}
	t.Fatal("the connection ended before DONE")
}

// TestStallEndsConversation stops the process at every distance from the last reading of the clock.
func TestStallEndsConversation(t *testing.T) {
	const half = 60 * time.Second
	for _, c := range []struct {
		name  string
		stall time.Duration
		awake bool
	}{
		{name: "less than half of the status timeout", stall: half, awake: true},
		{name: "half", stall: half + 1},
		{name: "long", stall: time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				w := newStallWatch(half, cancel)
				time.Sleep(c.stall)
				if got := w.awake(); got != c.awake || (ctx.Err() == nil) != c.awake {
					t.Errorf("awake = %v, context: %v; want %v", got, context.Cause(ctx), c.awake)
				}
				if got := w.awake(); got != c.awake {
					t.Errorf("awake at the next look = %v; want %v", got, c.awake)
				}
			})
		})
	}
}

// TestBusySpiderIsAwake: hours without a line, or within one fetch, are no stall.
func TestBusySpiderIsAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Timeout: 24 * time.Hour})
		pipeWeb(t, s, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) })
		d := newDaemon(t, s)
		go io.Copy(io.Discard, d.conn)
		time.Sleep(time.Hour)
		d.send("1.0.7 a 192.0.2.1 http://a.test/\n")
		time.Sleep(2 * time.Hour)
		select {
		case err := <-d.ended:
			t.Errorf("the conversation ended: %v", err)
		default:
		}
		if got := s.Stats().Fetched; got != 1 {
			t.Errorf("fetched %d; want 1", got)
		}
		d.conn.Close()
		if err := <-d.ended; !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("ended with %v; want the end of the stream", err)
		}
	})
}
