package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/clihelp"
)

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{name: "help", args: []string{"--help"}},
		{name: "help for serve", args: []string{"serve", "--help"}},
		{name: "nothing", status: 2, says: "spider serve"},
		{name: "unknown command", args: []string{"crawl"}, status: 2, says: "crawl"},
		{name: "unknown flag", args: []string{"serve", "--depth", "3"}, status: 2, says: "--depth"},
		{name: "argument", args: []string{"serve", "--listen", ":0", "x"}, status: 2, says: `"x"`},
		{name: "nowhere", args: []string{"serve"}, status: 2, says: "--dial"},
		{name: "log level", args: []string{"serve", "--dial", "a:1", "--log-level", "loud"}, status: 2,
			says: "loud"},
		{name: "duration", args: []string{"serve", "--dial", "a:1", "--timeout", "1"}, status: 2,
			says: "--timeout"},
		{name: "settings", args: []string{"serve", "--dial", "a:1", "--index", "x"}, status: 1,
			says: "index"},
		{name: "address", args: []string{"serve", "--listen", "x"}, status: 1, says: "--listen"},
		{name: "no port", args: []string{"serve", "--dial", "nowhere"}, status: 1, says: "--dial"},
		{name: "no such port", args: []string{"serve", "--dial", "a:1", "--dial", "a:70000"}, status: 1,
			says: "a:70000"},
		{name: "archive", args: []string{"serve", "--dial", "a:1", "--warc", filepath.Join(file, "x")},
			status: 1, says: "--warc"},
		{name: "archive in a folder where no file can be made",
			args: []string{"serve", "--dial", "a:1", "--warc", "/proc"}, status: 1, says: "--warc"},
		{name: "no CA", args: []string{"serve", "--dial", "a:1", "--tls-ca", file}, status: 1,
			says: "no certificate"},
		{name: "no CA file", args: []string{"serve", "--dial", "a:1", "--tls-ca", dir + "/x"}, status: 1,
			says: "--tls-ca"},
		{name: "half a certificate", args: []string{"serve", "--dial", "a:1", "--tls-cert", file},
			status: 1, says: "--tls-key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, faults bytes.Buffer
			err := run(t.Context(), c.args, &out, &faults)
			if clihelp.ExitStatus(err) != c.status {
				t.Fatalf("status %d, %v; want %d", clihelp.ExitStatus(err), err, c.status)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q says nothing of %s", err, c.says)
			}
		})
	}
}

// full is an output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFullOutput(t *testing.T) {
	err := run(t.Context(), []string{"--help"}, full{}, io.Discard)
	if !errors.Is(err, syscall.ENOSPC) || clihelp.ExitStatus(err) != 1 {
		t.Errorf("help that cannot be written: %v, status %d; want 1", err, clihelp.ExitStatus(err))
	}
}

func TestTokenIsNotShown(t *testing.T) {
	t.Setenv("URLSERVER_TOKEN", "very-secret")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"serve", "--help"}, &out, &out); err != nil ||
		strings.Contains(out.String(), "very-secret") {
		t.Errorf("%v, help is\n%s", err, out.Bytes())
	}
}

// The command dials its daemons and ends when it is told to.
func TestServeDials(t *testing.T) {
	var daemons [2]net.Listener
	args := []string{"serve", "--token", "secret", "--listen", "127.0.0.1:0", "--warc",
		filepath.Join(t.TempDir(), "warc")}
	for i := range daemons {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		daemons[i] = l
		args = append(args, "--dial", l.Addr().String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var out, faults bytes.Buffer
	go func() { ended <- run(ctx, args, &out, &faults) }()
	for _, l := range daemons {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "AUTH secret\n" {
			t.Errorf("first line is %q, %v", line, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run = %v; want nil", err)
	}
	if out.Len() != 0 || !strings.Contains(faults.String(), `"message":"ended"`) {
		t.Errorf("standard output %q, standard error\n%s", out.Bytes(), faults.Bytes())
	}
}

// unread is a log whose reader hangs.
type unread struct{}

func (unread) Write([]byte) (int, error) { select {} }

func TestLogReaderHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, io.Discard, unread{}) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("run = %v; want nil", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the spider waits for who reads its log")
	}
}
