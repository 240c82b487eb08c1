package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urlserver/internal/systemd"
	"urlserver/internal/testkit/redistest"
	"urlserver/reservation"
	"urlserver/reservation/cli"
	"urlserver/reservation/grpcclient"
)

// lines is a log that can be waited for.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// address waits for the log line of a message, and returns its address.
func (l *lines) address(t *testing.T, message string) string {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		for line := range strings.Lines(l.String()) {
			var entry struct{ Message, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == message {
				return entry.Address
			}
		}
		select {
		case <-l.more:
		case <-timeout:
			t.Fatalf("no %q in the log: %s", message, l)
		}
	}
}

// start runs serve until the test ends.
func start(t *testing.T, args ...string) *lines {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log, ended := newLines(), make(chan error)
	go func() {
		ended <- cli.Run(ctx, stores(), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), nil,
			io.Discard, log)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return log
}

func TestServeAndSeeds(t *testing.T) {
	log := start(t, "--store", "memory", "--metrics", "127.0.0.1:0", "--token", "secret")
	at := log.address(t, "serving")
	file := filepath.Join(t.TempDir(), "seeds.txt")
	list := "\ufeff# seeds\n\nhttp://A.test/x\nhttps://b.test:8443/\nhttp://a.test/y\n"
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := cli.Run(t.Context(), stores(), []string{"seeds", "--at", at, "--token", "secret", file}, nil,
		&out, &errs); err != nil || out.String() != "2 hosts added, 1 known, 0 lines invalid\n" {
		t.Errorf("seeds: %v, %q, %q", err, &out, &errs)
	}
	out.Reset()
	err := cli.Run(t.Context(), stores(), []string{"seeds", "--at", at, "--token", "secret", "-"},
		strings.NewReader("ftp://c.test/\n"+strings.Repeat("x", 1<<20)+"\nhttp://c.test/\nnothing"), &out, &errs)
	if cli.ExitStatus(err) != 1 || out.String() != "1 hosts added, 0 known, 3 lines invalid\n" ||
		!strings.Contains(errs.String(), "line 4") {
		t.Errorf("bad seeds: %v, %q, %q", err, &out, &errs)
	}
	if err := cli.Run(t.Context(), stores(), []string{"seeds", "--at", at, file}, nil, &out,
		&errs); cli.ExitStatus(err) != 1 {
		t.Errorf("seeds without the token: %v", err)
	}

	store, err := grpcclient.New(grpcclient.Config{Addrs: []string{at}, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	got, err := store.ReserveNextHost(t.Context(), time.Minute, 10, "me")
	hosts := []string{}
	for _, r := range got {
		hosts = append(hosts, r.Host)
	}
	slices.Sort(hosts) // seeds are added side by side
	if want := []string{"a.test", "b.test", "c.test"}; err != nil || !slices.Equal(hosts, want) {
		t.Errorf("ReserveNextHost = %q, %v; want %q", hosts, err, want)
	}
	if err := store.SetAlias(t.Context(), "both", []string{"a.test", "d.test"}); err != nil {
		t.Fatal(err)
	}
	checkCommands(t, at)
	checkMetrics(t, "http://"+log.address(t, "metrics"))
}

// checkCommands looks at the hosts of TestServeAndSeeds.
func checkCommands(t *testing.T, at string) {
	t.Helper()
	var out, errs bytes.Buffer
	for _, look := range []struct {
		args []string
		want string
	}{
		{[]string{"stats"}, "busy      3  leased\naliases   1\n"},
		{[]string{"explain", "b.test"}, "group   b.test\nstate   busy\n"},
		{[]string{"explain", "nobody.test"}, "state   unknown\n"},
		{[]string{"list", "a.test"}, "both  a.test\nboth  d.test\n"},
	} {
		out.Reset()
		err := cli.Run(t.Context(), stores(), append(look.args, "--at", at, "--token", "secret"),
			nil, &out, &errs)
		if err != nil || !strings.Contains(out.String(), look.want) {
			t.Errorf("%q: %v, %q; want %q in it", look.args, err, &out, look.want)
		}
	}
}

// checkMetrics asks for what TestServeAndSeeds serves to monitoring, with and without the token.
func checkMetrics(t *testing.T, metrics string) {
	t.Helper()
	for _, tc := range []struct {
		path, token, want string
		status            int
		last              bool // of the connection
	}{
		{path: "/healthz", status: 200, want: "ok", last: true},
		{path: "/healthz", token: "secret", status: 200, want: "ok"},
		{path: "/metrics", status: 401, want: "Bearer", last: true},
		{path: "/metrics", token: "wrong", status: 401, want: "Bearer", last: true},
		{path: "/metrics", token: "secret", status: 200, want: "hostreservation_hosts{state=\"busy\"} 3"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metrics+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.token != "" {
			req.Header.Set("Authorization", "Bearer "+tc.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.want) || resp.Close != tc.last {
			t.Errorf("GET %s = %d %.200s, the connection's last: %v; want %d with %s, %v", tc.path,
				resp.StatusCode, body, resp.Close, tc.status, tc.want, tc.last)
		}
	}
}

// TestServeRedis: two services over one Redis give out a host once.
func TestServeRedis(t *testing.T) {
	addr := redistest.Start(t).Addr()
	var stores []*grpcclient.Store
	for range 2 {
		log := start(t, "--store", "redis", "--addrs", addr, "--prefix", "x:")
		store, err := grpcclient.New(grpcclient.Config{Addrs: []string{log.address(t, "serving")}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		stores = append(stores, store)
	}
	if added, err := stores[0].AddHost(t.Context(), "a.test", time.Time{}); err != nil || !added {
		t.Fatalf("AddHost = %v, %v", added, err)
	}
	got, err := stores[1].ReserveNextHost(t.Context(), time.Hour, 10, "me")
	if err != nil || len(got) != 1 || got[0].Host != "a.test" {
		t.Fatalf("ReserveNextHost = %+v, %v; want a.test", got, err)
	}
	if _, err := stores[0].TryReserve(t.Context(), "a.test", time.Hour, "you"); !errors.Is(err,
		reservation.ErrNotNow) {
		t.Errorf("TryReserve by the other service = %v; want ErrNotNow", err)
	}
	if x, err := stores[0].Explain(t.Context(), "a.test"); err != nil || x.State != reservation.Busy ||
		x.Holder != "me" {
		t.Errorf("Explain = %+v, %v; want busy by me", x, err)
	}
	if err := stores[0].ReleaseHost(t.Context(), "a.test", got[0].Token, time.Time{}); err != nil {
		t.Errorf("ReleaseHost: %v", err)
	}
}

// TestRedisAway: a service whose Redis is not there serves, and says so to each caller.
func TestRedisAway(t *testing.T) {
	const away = "127.0.0.1:1"
	log := start(t, "--store", "redis", "--addrs", away, "--janitor", "1h")
	store, err := grpcclient.New(grpcclient.Config{Addrs: []string{log.address(t, "serving")}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.AddHost(t.Context(), "a.test", time.Time{}); err == nil ||
		errors.Is(err, reservation.ErrInvalid) || !strings.Contains(err.Error(), away) {
		t.Errorf("AddHost = %v; want an error that names %s", err, away)
	}
}

// TestAbout: the manual has every command, and so has what shells complete.
func TestAbout(t *testing.T) {
	for args, wants := range map[string][]string{
		"man": {".TH HOSTRESERVATION 1", "\n.SS \"hostreservation serve ",
			"\n.SS \"hostreservation seeds ", ".B \\-\\-redis\\-password", "\n.B HOSTRESERVATION_TOKEN\n"},
		"version":         {"hostreservation "},
		"completion bash": {"hostreservation"},
		"__complete s":    {"serve\t", "seeds\t"},
	} {
		var out, errs bytes.Buffer
		if err := cli.Run(t.Context(), stores(), strings.Fields(args), nil, &out, &errs); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s says %q; want %q in it", args, &out, want)
			}
		}
	}
}

// full is an output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFullOutput(t *testing.T) {
	err := cli.Run(t.Context(), stores(), []string{"help"}, nil, full{}, io.Discard)
	if !errors.Is(err, syscall.ENOSPC) || cli.ExitStatus(err) != 1 {
		t.Errorf("help that cannot be written: %v, status %d; want 1", err, cli.ExitStatus(err))
	}
}

// unread is a log whose reader hangs.
type unread struct{}

func (unread) Write([]byte) (int, error) { select {} }

func TestLogReaderHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- cli.Run(ctx, stores(), []string{"serve", "--listen", "127.0.0.1:0"}, nil, io.Discard, unread{})
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("serve = %v; want nil", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the service waits for who reads its log")
	}
}

// TestReady: the service manager is told when the listeners are up.
func TestReady(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	start(t, "--store", "memory")
	if err := l.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	told := make([]byte, 100)
	if n, err := l.Read(told); err != nil || string(told[:n]) != systemd.Ready {
		t.Errorf("the service manager is told %q, %v; want %q", told[:n], err, systemd.Ready)
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		says   string
	}{
		{args: "", status: 2},
		{args: "serve x", status: 2},
		{args: "serve --store tikv", status: 2},
		{args: "serve --penalty -1s", status: 2},
		{args: "serve --janitor 0", status: 2},
		{args: "serve --listen 0.0.0.0:0", status: 2, says: "open to others"},
		{args: "serve --metrics :0", status: 2, says: "open to others"},
		{args: "serve --listen 127.0.0.1", status: 2, says: "HOST:PORT"},
		{args: "serve --metrics localhost", status: 2, says: "HOST:PORT"},
		{args: "serve --listen 127.0.0.1:99999", status: 1},
		{args: "serve --tls-key none", status: 1},
		{args: "seeds", status: 2},
		{args: "completion tcsh", status: 2},
		{args: "version x", status: 2},
		{args: "seeds /none/such", status: 1},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // where serve would serve, it ends at once
		var out, errs bytes.Buffer
		if err := cli.Run(ctx, stores(), strings.Fields(tc.args), nil, &out,
			&errs); cli.ExitStatus(err) != tc.status || !strings.Contains(fmt.Sprint(err), tc.says) {
			t.Errorf("%q: %v, status %d; want %q, %d", tc.args, err, cli.ExitStatus(err), tc.says, tc.status)
		}
	}
}
