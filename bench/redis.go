package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// redisServer is a redis-server on loopback that keeps nothing.
type redisServer struct {
	addr string
	dir  string
	cmd  *exec.Cmd
}

var errNoRedis = errors.New("redis-server is not installed (Debian: redis-server)")

func startRedis(ctx context.Context) (s *redisServer, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errNoRedis
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s = &redisServer{addr: l.Addr().String()}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil { // it is free now
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, "redis-server", "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", "", "--dir", s.dir)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	for deadline := time.Now().Add(dialWait); ; {
		conn, err := net.Dial("tcp", s.addr)
		if err == nil {
			return s, conn.Close()
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(err, s.stop())
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
}

// scheduled is what the kernel tells of a thread: how long it had a core, and how long it wanted one and had none.
type scheduled struct{ ran, waited time.Duration }

// used is what Redis' main thread, which does all commands, has had.
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
	_ = s.cmd.Wait() // says that it was killed
	return errors.Join(err, os.RemoveAll(s.dir))
}
