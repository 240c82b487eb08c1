package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A container is what a runtime makes of an image, as far as the system can do it without one: the
// image's files as the root, its user, folder, environment and entry point, and process number 1. Not
// tried are what a runtime adds: a network and volumes of its own, /proc, /dev and /etc/resolv.conf.
type container struct {
	cmd  *exec.Cmd
	said said
}

// said is what a container has written.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// newContainer starts the image's entry point; without args, with those of the image.
func newContainer(t *testing.T, root string, runs v1.Config, args, environ []string) *container {
	t.Helper()
	var uid, gid uint32
	if _, err := fmt.Sscanf(runs.User, "%d:%d", &uid, &gid); err != nil {
		t.Fatal(err)
	}
	if args == nil {
		args = runs.Cmd
	}
	c := &container{cmd: exec.Command(runs.Entrypoint[0], slices.Concat(runs.Entrypoint[1:], args)...)}
	c.cmd.Dir, c.cmd.Env = runs.WorkingDir, slices.Concat(runs.Env, environ)
	c.cmd.Stdout, c.cmd.Stderr = &c.said, &c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid},
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	if err := c.cmd.Start(); err != nil {
		t.Skipf("the system makes no container of the image: %v", err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// says waits until the container has written a text.
func (c *container) says(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !strings.Contains(c.said.String(), text); {
		if time.Now().After(end) || c.cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatalf("the container does not say %q:\n%s", text, c.said.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stop ends the container as a runtime does.
func (c *container) stop(t *testing.T, runs v1.Config) {
	t.Helper()
	if runs.StopSignal != "SIGTERM" {
		t.Errorf("it is to be stopped by %q", runs.StopSignal)
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("stopped: %v:\n%s", err, c.said.String())
	}
}

// started starts the image as people start it.
func started(t *testing.T, root string, runs v1.Config) {
	if os.Getuid() != 0 {
		t.Skip("only root may make a container of the image")
	}
	// As the service in Java, over the same state twice.
	for range 2 {
		port := freePort(t)
		c := newContainer(t, root, runs, []string{"-h", "frontier", "-p", port,
			"rocksdb.path=/" + state + "/frontier"}, nil)
		c.says(t, "Started URLFrontierServer")
		speaksHTTP2(t, "127.0.0.1:"+port)
		c.stop(t, runs)
	}
	if info, err := os.Stat(filepath.Join(root, state, "frontier")); err != nil ||
		info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the index is not there, or is not of the image's user: %v", err)
	}
	// As it is, with tokens and settings from the environment; others reach it, so without tokens it ends.
	c := newContainer(t, root, runs, nil, nil)
	if err := c.cmd.Wait(); err == nil || !strings.Contains(c.said.String(), "token") {
		t.Errorf("without tokens: %v:\n%s", err, c.said.String())
	}
	c = newContainer(t, root, runs, nil, []string{"URLSERVER_HTTP_TOKEN=0123456789abcdef",
		"URLSERVER_SPIDER_TOKEN=0123456789abcdef", "URLSERVER_HTTP_LISTEN=127.0.0.1:" + freePort(t),
		"URLSERVER_SPIDER_LISTEN=127.0.0.1:" + freePort(t)})
	c.says(t, "listening for spiders")
	c.stop(t, runs)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// speaksHTTP2 looks whether an address answers as a gRPC server does: with HTTP/2 settings.
func speaksHTTP2(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	var head [9]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil || head[3] != 4 {
		t.Errorf("%s answers %x, %v; want HTTP/2 settings", addr, head, err)
	}
}
