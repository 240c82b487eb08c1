package urlserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/resolver"
)

// patience is the timeout of waits in tests. It measures nothing.
const patience = 5 * time.Minute

// rig is a daemon on real sockets with an embedded index.
type rig struct {
	t     testing.TB
	d     *Daemon
	store docindex.Store // nil: the index is elsewhere
	addr  string
	stop  func() error
}

func newRig(t testing.TB, change func(*configs.Config)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	return newRigOver(t, l, Parts{Index: store, Store: store}, change)
}

// newRigOver is newRig with the test's own listener and index.
func newRigOver(t testing.TB, l net.Listener, parts Parts, change func(*configs.Config)) *rig {
	t.Helper()
	cfg := configs.Default()
	cfg.Robots.Enabled = false
	cfg.ReqHostPerSec = 1000
	cfg.DocIndex.Retry = 10 * time.Millisecond
	if change != nil {
		change(&cfg)
	}
	res, err := resolver.New(resolver.Config{
		Servers: cfg.Resolver.Servers, MinTTL: cfg.Resolver.MinTTL,
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Close() })
	store, _ := parts.Store.(docindex.Store)
	r := &rig{t: t, store: store}
	parts.Resolver, parts.Log = res, zerolog.New(zerolog.NewTestWriter(t))
	r.d = New(cfg, parts)
	r.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.d.Run(ctx, l) }()
	r.stop = func() error { cancel(); return <-ended }
	return r
}

func (r *rig) put(urls ...string) {
	r.t.Helper()
	var p docindex.Puts
	for _, u := range urls {
		if err := p.Add(docindex.Put{URL: []byte(u)}); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, err := r.store.Put(r.t.Context(), &p); err != nil {
		r.t.Fatal(err)
	}
}

// fake is a spider's side of a connection.
type fake struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (r *rig) spider() *fake {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return newFake(r.t, conn)
}

func newFake(t testing.TB, conn net.Conn) *fake {
	return &fake{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (f *fake) next() []string {
	f.t.Helper()
	fields, err := f.read()
	if err != nil {
		f.t.Fatal(err)
	}
	return fields
}

// read returns the fields of the next line.
func (f *fake) read() ([]string, error) {
	f.conn.SetReadDeadline(time.Now().Add(patience))
	line, err := f.in.ReadString('\n')
	return strings.Fields(line), err
}

func (f *fake) say(format string, args ...any) {
	f.t.Helper()
	if _, err := fmt.Fprintf(f.conn, format+"\n", args...); err != nil {
		f.t.Fatal(err)
	}
}

func TestFromIndexToSpiderAndBack(t *testing.T) {
	r := newRig(t, nil)
	s := r.spider()
	r.put("http://127.0.0.1/a", "http://127.0.0.2/b", "http://127.0.0.1/c")
	seen := map[string]string{}
	for range 3 {
		f := s.next()
		if len(f) != 4 {
			t.Fatalf("line = %q, want four fields", f)
		}
		seen[f[3]] = f[2]
		s.say("%s DONE 200", f[0])
	}
	if seen["http://127.0.0.1/a"] != "127.0.0.1" || seen["http://127.0.0.2/b"] != "127.0.0.2" || len(seen) != 3 {
		t.Errorf("sent %v", seen)
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := r.store.Stats().Outcomes[docindex.Done]; got != 3 {
		t.Errorf("%d outcomes are in the store; want 3", got)
	}
}
