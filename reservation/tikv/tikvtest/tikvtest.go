// Package tikvtest runs servers of a test's own, on loopback, that speak TiKV's and PD's protocols.
package tikvtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urlserver/internal/testkit/ports"
)

// script starts and stops such servers; it stands beside the checkout.
const script = "shared/servers/tikv.sh"

// Server is a server of a test's own.
type Server struct {
	t    testing.TB
	path string // of the script
	dir  string
	env  []string
	port int // PD's; TiKV's is the next
}

// Start runs a server until the test ends, with env of the script ("TIKV_PD=real"). It skips the
// test, in sight, where there is no script. The first one builds it.
func Start(t testing.TB, env ...string) *Server {
	t.Helper()
	path := find(t)
	var err error
	for range 20 { // another may take a free port first
		s := &Server{t: t, path: path, dir: t.TempDir(), env: append(os.Environ(), env...), port: ports.Free(t, 3)}
		if err = s.Restart(); err == nil {
			t.Cleanup(s.Stop)
			return s
		}
	}
	t.Fatalf("no TiKV server came up: %v", err)
	return nil
}

func find(t testing.TB) string {
	t.Helper()
	for dir, err := filepath.Abs("."); err == nil && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, script)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	t.Skipf("%s is not beside the checkout: nothing of reservation/tikv is tested with TiKV's protocol", script)
	return ""
}

// Addr is where PD listens.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Restart runs the server that was stopped, with its data.
func (s *Server) Restart() error { return s.run("start", s.dir, fmt.Sprint(s.port)) }

// Stop ends the server.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.run("stop", s.dir); err != nil {
		s.t.Errorf("stop TiKV: %v", err)
	}
}

func (s *Server) run(args ...string) error {
	cmd := exec.Command(s.path, args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(s.path), args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
