package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex/memory"
	"urlserver/internal/resolver"
	"urlserver/urlserver"
)

// rig is a daemon and its HTTP server on real sockets.
type rig struct {
	t       *testing.T
	daemon  *urlserver.Daemon
	store   *memory.Store
	server  *Server
	base    string // base URL
	spiders string // address for spiders
	stop    func() // stops only the daemon
	end     func() // stops only its HTTP server; may be called again
}

// setup is the configuration of a rig.
type setup struct {
	token, listen string
	hosts         []string
	web           net.Listener // nil: a listener on loopback
	recent        *Warnings    // receives the log; nil: nothing does
	remote        bool         // the index is not embedded
	config        func(*configs.Config)
	parts         func(*urlserver.Parts)
}

func newRig(t *testing.T, set setup) *rig {
	t.Helper()
	cfg := configs.Default()
	cfg.Robots.Enabled = false
	cfg.ReqHostPerSec = 1000
	if set.config != nil {
		set.config(&cfg)
	}
	res, err := resolver.New(resolver.Config{
		HostsFile: "-", Servers: []string{"127.0.0.1:9"},
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Close() })
	r := &rig{t: t, store: memory.New()}
	parts := urlserver.Parts{Index: r.store, Resolver: res, Log: zerolog.Nop()}
	ours := Config{Token: set.token, Listen: set.listen, Hosts: set.hosts, Log: zerolog.Nop()}
	if set.recent != nil {
		ours.Log, ours.Recent = zerolog.New(set.recent), set.recent
	}
	if !set.remote {
		parts.Store, ours.Store = r.store, r.store
	}
	if set.parts != nil {
		set.parts(&parts)
	}
	r.daemon = urlserver.New(cfg, parts)
	ours.Daemon = r.daemon
	r.server = New(ours)
	if set.web == nil {
		set.web = listen(t)
	}
	r.run(set.web)
	return r
}

// run starts both. They end with the test.
func (r *rig) run(web net.Listener) {
	r.t.Helper()
	spiders := listen(r.t)
	r.spiders, r.base = spiders.Addr().String(), "http://"+web.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	daemon := make(chan error, 1)
	go func() { daemon <- r.daemon.Run(ctx, spiders) }()
	r.stop = func() {
		cancel()
		if err := <-daemon; err != nil {
			r.t.Errorf("Run: %v", err)
		}
		daemon <- nil
	}
	webCtx, cancelWeb := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(webCtx, web) }()
	r.end = func() {
		cancelWeb()
		if err := <-served; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
		served <- nil
	}
	r.t.Cleanup(func() {
		r.end()
		r.stop()
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// answered is an answer with its body.
type answered struct {
	*http.Response
	body string
}

// ask makes a request. header holds names and values in turn, also of Host.
func (r *rig) ask(method, path, body string, header ...string) answered {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answered{resp, string(text)}
}

// into decodes a 200 into v.
func (r *rig) into(v any, method, path, body string) {
	r.t.Helper()
	a := r.ask(method, path, body)
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" {
		r.t.Fatalf("%s %s: %s, %s: %s", method, path, a.Status, a.Header.Get("Content-Type"), a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		r.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
}

// wantError checks that an answer is an error in the form of the contract.
func (a answered) wantError(t *testing.T, status int, text string) {
	t.Helper()
	var failure struct{ Error string }
	if err := json.Unmarshal([]byte(a.body), &failure); err != nil {
		t.Errorf("answer %q is no JSON: %v", a.body, err)
	}
	if a.StatusCode != status || !strings.Contains(failure.Error, text) {
		t.Errorf("answer is %d, error %q; want %d, %q", a.StatusCode, failure.Error, status, text)
	}
}

func (r *rig) put(urls ...string) {
	r.t.Helper()
	if a := r.ask("POST", "/docindex/urls", strings.Join(urls, "\n")); a.StatusCode != 200 {
		r.t.Fatalf("put: %s: %s", a.Status, a.body)
	}
}

// fake is a spider's side of a connection.
type fake struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (r *rig) spider() *fake {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.spiders)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return &fake{t: r.t, conn: conn, in: bufio.NewReader(conn)}
}

// next waits for the next document and returns its TRANS_ID.
func (f *fake) next() string {
	f.t.Helper()
	f.conn.SetReadDeadline(time.Now().Add(testTimeout))
	line, err := f.in.ReadString('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	trans, _, _ := strings.Cut(line, " ")
	return trans
}

func (f *fake) done(trans string) {
	f.t.Helper()
	if _, err := fmt.Fprintf(f.conn, "%s DONE 200\n", trans); err != nil {
		f.t.Fatal(err)
	}
}
