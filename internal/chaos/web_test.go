package chaos

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// slack is how much too early a request may look, beside what the machine is seen to be late: the
// daemon's gap is that of lines, and what a line takes to become a request varies.
const slack = 200 * time.Millisecond

// oracle judges by what web servers see, on their own clock. Safe for concurrent use.
type oracle struct {
	gap    time.Duration
	takes  time.Duration // at most, for a page
	stalls *stalls

	mu     sync.Mutex // guards all below; held for memory work only
	paces  map[string]*pace
	seen   map[string]int       // requests by URL
	lines  map[string]time.Time // when the line with a URL left its daemon, of those that have not arrived
	faults faults
	open   int // faults that were a request while another one was open
}

// pace is what an address, or a name, has seen.
type pace struct {
	open int
	last time.Time // request
	line time.Time // when the last request left its daemon, or arrived where that is not known
	end  time.Time // of the last request
	url  string
}

// faults keeps the first of many.
type faults struct {
	first []string
	count int
}

func (f *faults) addf(format string, args ...any) {
	if f.count++; len(f.first) < 20 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

func newOracle(gap, takes time.Duration, s *stalls) *oracle {
	return &oracle{gap: gap, takes: takes, stalls: s, paces: map[string]*pace{}, seen: map[string]int{},
		lines: map[string]time.Time{}}
}

// sent sees a line to a spider. The daemon keeps the gap between lines; a request that is held up
// on its way makes the next one look early, so a gap counts from the line.
func (o *oracle) sent(line []byte) {
	f := bytes.Fields(line)
	if len(f) != 4 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[withoutPort(string(f[3]))] = time.Now()
}

func withoutPort(url string) string {
	return strings.Replace(url, fmt.Sprintf(":%d/", webPort), "/", 1)
}

// arrive takes a request in; end is to be called before the answer leaves.
func (o *oracle) arrive(addr, host, path string) (end func()) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	url := "http://" + host + path
	o.seen[url]++
	line, known := o.lines[url]
	if delete(o.lines, url); !known {
		line = now
	}
	var both []*pace
	for _, name := range []string{addr, host} {
		p := o.paces[name]
		if p == nil {
			p = &pace{}
			o.paces[name] = p
		}
		o.judge(name, p, now, url)
		p.open++
		p.last, p.line, p.url = now, line, url
		both = append(both, p)
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, p := range both {
			p.open--
			p.end = time.Now()
		}
	}
}

// judge takes two requests for open at once where the first could not have ended when the second
// came: one that has been on its way, or open, for longer than any page takes is open since this
// machine is late, and no daemon can know that.
func (o *oracle) judge(name string, p *pace, now time.Time, url string) {
	if p.open > 0 && now.Sub(p.line) < o.takes+slack {
		o.open++
		o.faults.addf("%s %s: asked for %s while %s is open since %v", now.Format(clock), name, url, p.url,
			now.Sub(p.last))
	}
	late := o.stalls.worst(p.line.Add(-time.Second))
	if seen := now.Sub(p.line); !p.last.IsZero() && seen < o.gap-slack-4*late {
		o.faults.addf("%s %s: asked for %s %v after %s left its daemon, %v after it came and %v after "+
			"its end; %v is allowed, and the machine was %v late",
			now.Format(clock), name, url, seen, p.url, now.Sub(p.last), now.Sub(p.end), o.gap, late)
	}
}

const clock = "15:04:05.000"

// seenFaults counts requests that came while another one was open, and those that came too soon.
func (o *oracle) seenFaults() (open, soon int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open, o.faults.count - o.open
}

// last is when an address or a name was asked last.
func (o *oracle) last(name string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.paces[name]; p != nil {
		return p.last
	}
	return time.Time{}
}

// fetched tells how often URLs were asked for, robots.txt too, and if this one was.
func (o *oracle) fetched(url string) (all int, this bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.seen {
		all += n
	}
	return all, o.seen[url] > 0
}

// server is the handler of all web servers.
type server struct {
	oracle *oracle
	serves func(host string, addr netip.Addr) bool
	takes  time.Duration // at most, for a page
}

func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().Addr().Unmap()
	host, _, _ := net.SplitHostPort(r.Host)
	if !s.serves(host, local) {
		s.oracle.mu.Lock()
		s.oracle.faults.addf("%s asked at %v, which is not its address", host, local)
		s.oracle.mu.Unlock()
	}
	end := s.oracle.arrive(local.String(), host, r.URL.Path)
	answer := "User-agent: *\nAllow: /\n"
	if r.URL.Path != "/robots.txt" {
		answer = "page\n"
		select {
		case <-time.After(s.takes * time.Duration(len(r.URL.Path)%4) / 3):
		case <-r.Context().Done():
		}
	}
	end()
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprint(w, answer)
}

// serveWeb has a web server on each address until the test ends.
func serveWeb(t *testing.T, addrs []netip.Addr, h http.Handler) {
	t.Helper()
	srv := &http.Server{Handler: h}
	for _, addr := range addrs {
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr, webPort).String())
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l) // until Close
	}
	t.Cleanup(func() { srv.Close() })
}

// stalls knows how late this machine runs what is due: a request that is seen late makes the next
// one look early.
type stalls struct {
	mu   sync.Mutex
	late []stall // by time, of the last minute
}

type stall struct {
	at   time.Time
	late time.Duration
}

// watch looks each few ms until the test ends.
func (s *stalls) watch(t *testing.T) {
	const every = 5 * time.Millisecond
	end, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-end:
				return
			case <-time.After(every):
			}
			s.note(time.Now(), time.Since(began)-every)
		}
	}()
}

func (s *stalls) note(now time.Time, late time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, stall{now, late})
	for now.Sub(s.late[0].at) > time.Minute {
		s.late = s.late[1:]
	}
}

// worst is the latest that anything was since then.
func (s *stalls) worst(since time.Time) (worst time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.late) - 1; i >= 0 && s.late[i].at.After(since); i-- {
		worst = max(worst, s.late[i].late)
	}
	return worst
}
