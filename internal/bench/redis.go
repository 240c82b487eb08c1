package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// redisServer is a redis-server on loopback that stores nothing on disk.
type redisServer struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	over chan struct{} // closed when cmd has ended
}

var (
	errNoRedis = errors.New("redis-server is not installed (Debian: redis-server)")
	errEnded   = errors.New("redis-server has ended")
)

func startRedis(ctx context.Context) (s *redisServer, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errNoRedis
	}
	for range 10 { // another process may take the free port first
		if s, err = tryRedis(ctx); !errors.Is(err, errEnded) {
			return s, err
		}
	}
	return nil, err
}

func tryRedis(ctx context.Context) (s *redisServer, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s = &redisServer{addr: l.Addr().String(), over: make(chan struct{})}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil { // the server listens on its port
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", fmt.Sprint(port),
		"--save", "", "--dir", s.dir)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	go func() {
		_ = s.cmd.Wait() // its error says that it was killed
		close(s.over)
	}()
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// await waits until the server answers. It fails if the server has ended, for example because
// another process has the port.
func (s *redisServer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	for !s.answers() {
		select {
		case <-s.over:
			return errEnded
		default:
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("redis-server does not answer: %w", err)
		}
	}
	return nil
}

// answers reports whether this server has the port.
func (s *redisServer) answers() bool {
	conn, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprint(conn, "INFO server\r\n")
	text := make([]byte, 4096)
	n, _ := conn.Read(text)
	return bytes.Contains(text[:n], fmt.Appendf(nil, "process_id:%d\r\n", s.cmd.Process.Pid))
}

// scheduled is the kernel's statistics of a thread: how long it ran, and how long it was runnable
// and waited for a core.
type scheduled struct{ ran, waited time.Duration }

// used returns the statistics of Redis' main thread, which executes all commands.
func (s *redisServer) used() (scheduled, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.cmd.Process.Pid))
	if err != nil {
		return scheduled{}, err
	}
	return parseScheduled(string(text))
}

func parseScheduled(text string) (s scheduled, err error) {
	if _, err := fmt.Sscan(text, &s.ran, &s.waited); err != nil {
		return scheduled{}, fmt.Errorf("schedstat %q: %w", text, err)
	}
	return s, nil
}

const dialWait = time.Minute

func (s *redisServer) stop() error {
	err := s.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.over
	return errors.Join(err, os.RemoveAll(s.dir))
}
