package urlserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/resolver"
)

// bubble is a daemon within synctest. Its spiders connect over net.Pipe, its index is a fakeIndex
// or an embedded store, and all time is virtual. Hosts are IP addresses from 10.0.0.0/8, and
// names in the hosts file.
type bubble struct {
	t     *testing.T
	hosts string // the hosts file; "": /etc/hosts
	d     *Daemon
	index *fakeIndex
	store *memory.Store // nil: index is used
	pipes *pipes
	log   *logged
	end   context.CancelFunc
	ended chan error
}

func bubbleConfig(change func(*configs.Config)) configs.Config {
	cfg := configs.Default()
	cfg.Robots.Enabled = false
	cfg.ReqHostPerSec = 1
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// newBubble starts a daemon with a fakeIndex. The test stops it.
func newBubble(t *testing.T, change func(*configs.Config)) *bubble {
	b := &bubble{t: t, index: &fakeIndex{}}
	return b.start(change, Parts{Index: b.index})
}

func (b *bubble) start(change func(*configs.Config), parts Parts) *bubble {
	b.t.Helper()
	res, err := resolver.New(resolver.Config{Servers: []string{"127.0.0.1:1"}, HostsFile: b.hosts,
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.log = &logged{}
	parts.Resolver, parts.Log = res, zerolog.New(b.log)
	b.d = New(bubbleConfig(change), parts)
	b.pipes = newPipes()
	ctx, cancel := context.WithCancel(context.Background())
	b.end, b.ended = cancel, make(chan error, 1)
	go func() {
		err := b.d.Run(ctx, b.pipes)
		b.ended <- errors.Join(err, res.Close())
	}()
	return b
}

// stop stops the daemon and returns how long that took.
func (b *bubble) stop() (took time.Duration, err error) {
	began := time.Now()
	b.end()
	err = <-b.ended
	return time.Since(began), err
}

// stopped is stop for tests that ignore the result.
func (b *bubble) stopped() {
	b.t.Helper()
	if _, err := b.stop(); err != nil {
		b.t.Errorf("Run: %v", err)
	}
}

// spider connects a spider, which sends lines first.
func (b *bubble) spider(lines ...string) *pipeSpider {
	b.t.Helper()
	conn, theirs := net.Pipe()
	b.pipes.conns <- theirs
	s := &pipeSpider{t: b.t, conn: conn, in: bufio.NewReader(conn)}
	for _, line := range lines {
		s.say("%s", line)
	}
	return s
}

// pipeSpider is a spider's end of a net.Pipe.
type pipeSpider struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (s *pipeSpider) say(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.conn, format+"\n", args...); err != nil {
		s.t.Fatalf("say %q: %v", fmt.Sprintf(format, args...), err)
	}
}

// line waits for the next line. It fails the test if the connection ends.
func (s *pipeSpider) line() (trans, id string) {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	f := strings.Fields(line)
	if err != nil || len(f) != 4 {
		s.t.Fatalf("line %q: %v", line, err)
	}
	return f[0], f[1]
}

// closed waits for the end of the connection and returns the bytes before it.
func (s *pipeSpider) closed() string {
	rest, _ := io.ReadAll(s.in)
	return string(rest)
}

// pipes is a listener of net.Pipe connections.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// fakeIndex offers each document once, and takes outcomes unless fail is set.
type fakeIndex struct {
	mu     sync.Mutex // guards all below
	offers []string   // "ID URL" or "ID URL SPIDERID"
	fail   error      // of Outcomes
	taken  []string   // "ID outcome"
	tried  []time.Time
	asked  []time.Time
}

func (f *fakeIndex) offer(docs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offers = append(f.offers, docs...)
}

func (f *fakeIndex) Candidates(_ context.Context, max int, _ []string, b *docindex.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, time.Now())
	n := min(max, len(f.offers))
	for _, doc := range f.offers[:n] {
		id, url, _ := strings.Cut(doc, " ")
		url, spider, _ := strings.Cut(url, " ")
		b.AddFor([]byte(id), []byte(url), 0, spider, "")
	}
	f.offers = f.offers[n:]
	return nil
}

func (f *fakeIndex) Outcomes(_ context.Context, o *docindex.Outcomes) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = append(f.tried, time.Now())
	if f.fail != nil {
		return f.fail
	}
	for i := range o.Len() {
		f.taken = append(f.taken, fmt.Sprintf("%s %v", o.At(i).DocID, o.At(i).Kind))
	}
	return nil
}

func (f *fakeIndex) failing(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// outcomes returns the outcomes taken so far. tries are the times of the calls since start.
func (f *fakeIndex) outcomes(start time.Time) (taken []string, tries []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.tried {
		tries = append(tries, at.Sub(start))
	}
	return slices.Clone(f.taken), tries
}

// logged collects the log.
type logged struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}
