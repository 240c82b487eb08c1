// Package redistest runs redis-servers for tests, on loopback.
package redistest

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/testkit/ports"
)

// Server is a redis-server of one test.
type Server struct {
	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
	over chan struct{} // closed when cmd has ended
	log  string
}

// Need skips the test if there is no redis-server.
func Need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(program()); err != nil {
		t.Skipf("%s is not installed (Debian: redis-server): nothing that needs it is tested", program())
	}
}

// program returns the server to test with: REDIS_SERVER, for a compatible one, or redis-server.
func program() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

// Start runs a redis-server on a free port of loopback, until the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	Need(t)
	for range 20 { // another process may take the free port first
		s := &Server{t: t, port: ports.Free(t, 1), args: args, log: filepath.Join(t.TempDir(), "redis.log")}
		if s.Restart() {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal("no redis-server came up on any of 20 free ports")
	return nil
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Restart starts the server again, on its port and with its data, and reports whether it answers.
func (s *Server) Restart() bool {
	s.t.Helper()
	dir := filepath.Dir(s.log)
	args := append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(s.port), "--dir", dir, "--logfile",
		s.log, "--save", ""}, s.args...)
	s.cmd = exec.Command(program(), args...)
	s.cmd.Dir = dir
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	over := make(chan struct{})
	s.over = over
	go func(cmd *exec.Cmd) {
		cmd.Wait()
		close(over)
	}(s.cmd)
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		if s.Ping() {
			return true
		}
		select {
		case <-over:
			return false
		case <-time.After(10 * time.Millisecond): // between two looks, not for luck
		}
	}
	s.t.Fatalf("redis-server does not answer: %s", s.Tail())
	return false
}

// Ping reports whether the server answers and is the one that this test started.
func (s *Server) Ping() bool {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(conn, "INFO server\r\n")
	buf := make([]byte, 4096)
	n, _ := conn.Read(buf)
	return bytes.Contains(buf[:n], fmt.Appendf(nil, "process_id:%d", s.cmd.Process.Pid))
}

// Kill kills the server as a crash would. When it returns, the port is free.
func (s *Server) Kill() {
	if s.cmd.Process != nil {
		s.cmd.Process.Kill()
		<-s.over
	}
}

// Freeze stops the server's process as it is, until Thaw.
func (s *Server) Freeze() { s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.cmd.Process.Signal(syscall.SIGCONT) }

// StartReplica runs a replica of a server until the test ends, and waits until it follows.
func StartReplica(t testing.TB, of *Server) *Server {
	t.Helper()
	s := Start(t, "--replicaof", "127.0.0.1", fmt.Sprint(of.port))
	Eventually(t, "a replica", func() bool {
		return strings.Contains(of.CLI("INFO", "replication"), "state=online")
	})
	return s
}

// Tail returns the end of the server's log.
func (s *Server) Tail() string {
	text, _ := os.ReadFile(s.log)
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
