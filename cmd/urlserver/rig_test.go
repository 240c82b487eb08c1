package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"urlserver/reservation"
	reserving "urlserver/reservation/cli"
	reservations "urlserver/reservation/memory"
)

// childEnv makes the test binary run as a command.
const (
	childEnv     = "TEST_URLSERVER_COMMAND"
	childService = "hostreservation" // makes it that command, over memory
)

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		os.Exit(m.Run())
	case childService:
		os.Exit(reserving.Main(reserving.Stores{
			Names: []string{"memory"}, Local: "memory", Flags: func(*pflag.FlagSet) {},
			Open: func(reserving.Opening) (reservation.Store, func(), error) {
				return reservations.New(reservations.Config{}), func() {}, nil
			},
		}))
	}
	main()
}

// patience is the timeout of waits in tests. It measures nothing.
const patience = 5 * time.Minute

// result is the result of a command.
type result struct {
	code      int
	out, errs string
}

// command runs a command to its end.
func command(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(in), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// want checks the exit status, and that standard output and standard error contain texts.
func (r result) want(t *testing.T, code int, out, errs string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.errs, errs) {
		t.Errorf("exit status %d, output %q, errors %q; want %d, %q, %q", r.code, r.out, r.errs, code, out, errs)
	}
}

// write writes a file and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settings writes the settings file of a daemon on free ports, without robots.txt, with more at its
// end.
func settings(t *testing.T, more string) string {
	t.Helper()
	return write(t, "urlserver.toml", fmt.Sprintf(base, more))
}

const base = `Req_Host_Per_Sec = 1000
spider.listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
robots.enabled = false
resolver.servers = ["127.0.0.1:9"]
resolver.allow_networks = ["127.0.0.0/8"]
%s
`

// daemon is a serve command within this process.
type daemon struct {
	t        *testing.T
	log      *daemonLog
	at       string // for --at
	spiders  string // address for spiders
	frontier string // address for URL Frontier clients; "": none
	end      context.CancelFunc
	ended    chan int
}

func startDaemon(t *testing.T, file string) *daemon {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	d := &daemon{t: t, log: readLog(t, r), end: cancel, ended: make(chan int, 1)}
	go func() {
		d.ended <- run(ctx, []string{"serve", file}, strings.NewReader(""), io.Discard, w)
		w.Close()
	}()
	d.at = "http://" + d.log.until("listening for HTTP")["address"].(string)
	if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "frontier.listen") {
		d.frontier = d.log.until("listening for clients of the URL Frontier")["address"].(string)
	}
	d.spiders = d.log.until("listening for spiders")["address"].(string)
	t.Cleanup(func() { d.stop() })
	return d
}

// stop ends the daemon, and returns its exit status and the rest of its log.
func (d *daemon) stop() (code int, log string) {
	d.end()
	log = d.log.rest()
	code = <-d.ended
	d.ended <- code
	return code, log
}

// ask makes an HTTP request, without a token if token is "".
func (d *daemon) ask(method, path, token string) (*http.Response, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.at+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp, string(text)
}

// fake is a spider's side of a connection.
type fake struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dialSpider(t *testing.T, addr string) *fake {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &fake{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// next waits for the next document: TRANS_ID, DOC_ID, HOST_IP, URL.
func (f *fake) next() []string {
	f.t.Helper()
	f.conn.SetReadDeadline(time.Now().Add(patience))
	line, err := f.in.ReadString('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Fields(line)
}

func (f *fake) done(trans string) {
	f.t.Helper()
	if _, err := fmt.Fprintf(f.conn, "%s DONE 200\n", trans); err != nil {
		f.t.Fatal(err)
	}
}
