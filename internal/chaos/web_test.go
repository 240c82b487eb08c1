package chaos

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// slack is how much too early a request may seem, beside the measured delays of this machine. The
// daemon keeps gaps between lines, and the time from a line to its request varies.
const slack = 200 * time.Millisecond

// oracle judges by the requests that web servers receive, on their own clock: each site and each
// address. Safe for concurrent use.
type oracle struct {
	site   limits
	above  func(addr netip.Addr) level // its address; nil: it is not judged
	takes  time.Duration               // longest time for a page
	stalls *stalls

	mu     sync.Mutex // guards all below; held for memory work only
	paces  map[string]*pace
	seen   map[string]int         // requests by URL
	lines  map[string]time.Time   // when lines left their daemons, by URL, until their requests arrive
	left   map[string][]time.Time // by shared network: when the lines of all requests left their daemons
	faults faults
	open   int     // faults that were a request while another one was open
	recent []event // what happened within the last seconds, to tell with a fault

	refused int // answers with Retry-After that daemons know of
}

// event is something that the oracle saw of a URL.
type event struct {
	at        time.Time
	what, url string
}

// keeps is how long the oracle keeps events.
const keeps = 10 * time.Second

// saw keeps an event. The caller holds mu.
func (o *oracle) saw(what, url string) {
	now := time.Now()
	if len(o.recent) > 0 && now.Sub(o.recent[0].at) > 2*keeps {
		o.recent = slices.DeleteFunc(o.recent, func(e event) bool { return now.Sub(e.at) > keeps })
	}
	o.recent = append(o.recent, event{now, what, url})
}

// tell returns the events of the hosts of two URLs. The caller holds mu.
func (o *oracle) tell(one, other string) string {
	var text strings.Builder
	for _, e := range o.recent {
		if host := hostOf(e.url); host == hostOf(one) || host == hostOf(other) {
			fmt.Fprintf(&text, "\n        %s %s %s", e.at.Format(clock), e.what, e.url)
		}
	}
	return text.String()
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// limits is the least time between two requests, and how many may be open. perSec is of a shared
// network, in place of gap: how many requests a second there may be over a while.
type limits struct {
	gap    time.Duration
	perSec int
	open   int
}

// level is a site, an address or a shared network.
type level struct {
	name string
	limits
}

// pace is the requests to a site, an address or a shared network.
type pace struct {
	open  int
	opens map[*time.Time]struct{} // of a shared network: when the lines of open requests left their daemons
	retry time.Time               // no request before, by the last answer
	last  time.Time               // when the last request arrived
	line  time.Time               // when the last request's line left its daemon; if unknown, when it arrived
	end   time.Time               // end of the last request
	url   string
}

// faults counts faults and keeps the first ones.
type faults struct {
	first []string
	count int
}

func (f *faults) addf(format string, args ...any) {
	if f.count++; len(f.first) < 20 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

func newOracle(site limits, above func(netip.Addr) level, takes time.Duration, s *stalls) *oracle {
	return &oracle{site: site, above: above, takes: takes, stalls: s, paces: map[string]*pace{},
		seen: map[string]int{}, lines: map[string]time.Time{}, left: map[string][]time.Time{}}
}

// sent records a line that a daemon sends to a spider. The daemon keeps the gap between lines. If a
// request is delayed on its way, the next one seems early, so a gap counts from the line. urls gets
// the URLs of a daemon's transactions.
func (o *oracle) sent(daemon string, line []byte, urls map[string]string) {
	f := bytes.Fields(line)
	if len(f) != 4 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	url := withoutPort(string(f[3]))
	o.lines[url], urls[string(f[0])] = time.Now(), url
	o.saw(fmt.Sprintf("%s sends transaction %s at %s", daemon, f[0], f[2]), url)
}

// answered records what a spider has told its daemon of a transaction: from then on Retry-After
// holds. If the spider is lost before that, the daemon does not know of it.
func (o *oracle) answered(daemon string, line []byte, urls map[string]string) {
	f := bytes.Fields(line)
	if len(f) < 3 || string(f[1]) != "DONE" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.saw(fmt.Sprintf("%s was told %q of", daemon, line), urls[string(f[0])])
	if len(f) < 4 || string(f[3]) != "2" || string(f[2]) != "429" && string(f[2]) != "503" {
		return
	}
	if u, err := url.Parse(urls[string(f[0])]); err == nil && o.paces[u.Host] != nil {
		o.refused++
		o.paces[u.Host].retry = time.Now().Add(retryAfter)
	}
}

func withoutPort(url string) string {
	return strings.Replace(url, fmt.Sprintf(":%d/", webPort), "/", 1)
}

// arrive records a request. The caller calls end before the answer is sent. Without addr only the
// site is judged.
func (o *oracle) arrive(addr netip.Addr, host, path, agent string) (end func()) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	url := "http://" + host + path
	o.seen[url]++
	line, known := o.lines[url]
	if delete(o.lines, url); !known {
		line = now
	}
	o.saw(fmt.Sprintf("%s asks at %v", agent, addr), url)
	var both []*pace
	levels := []level{{host, o.site}}
	if addr.IsValid() {
		levels = append(levels, o.above(addr))
	}
	for _, l := range levels {
		p := o.paces[l.name]
		if p == nil {
			p = &pace{opens: map[*time.Time]struct{}{}}
			o.paces[l.name] = p
		}
		o.judge(l, p, now, url)
		p.open++
		p.opens[&line] = struct{}{}
		if l.perSec > 0 {
			o.left[l.name] = append(o.left[l.name], line)
		}
		p.last, p.line, p.url = now, line, url
		both = append(both, p)
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, p := range both {
			p.open--
			delete(p.opens, &line)
			p.end = time.Now()
		}
	}
}

// retryAfter is what some answers ask for. A daemon that loses the lease before it has told the store
// leaves the others to the penalty, which is longer, so none may come sooner.
const retryAfter = 2 * time.Second

// refuse reports whether a request is to be answered with Retry-After: the first one for every so
// many URLs.
func (o *oracle) refuse(host, path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	hash := fnv.New32()
	fmt.Fprint(hash, host, path)
	return path != "/robots.txt" && o.seen["http://"+host+path] == 1 && hash.Sum32()%25 == 0
}

// judge checks a request. Two requests were open at once if the first cannot have ended when the
// second arrived. A request that was on its way, or open, for longer than any page takes is open
// because this machine is slow, and no daemon can know that.
func (o *oracle) judge(l level, p *pace, now time.Time, url string) {
	open := 0
	for line := range p.opens {
		if now.Sub(*line) < o.takes+slack {
			open++
		}
	}
	if open >= l.limits.open {
		o.open++
		o.faults.addf("%s %s: asked for %s while %d are open, %s since %v%s", now.Format(clock), l.name, url, open,
			p.url, now.Sub(p.last), o.tell(url, p.url))
	}
	late := o.stalls.worst(p.line.Add(-time.Second))
	if seen := now.Sub(p.line); !p.last.IsZero() && seen < l.gap-slack-4*late {
		o.faults.addf("%s %s: asked for %s %v after %s left its daemon, %v after it came and %v after "+
			"its end; %v is allowed, and the machine was %v late%s",
			now.Format(clock), l.name, url, seen, p.url, now.Sub(p.last), now.Sub(p.end), l.gap, late,
			o.tell(url, p.url))
	}
	if early := p.retry.Sub(now); early > slack+4*late {
		o.faults.addf("%s %s: asked for %s %v before its Retry-After has passed%s", now.Format(clock), l.name,
			url, early, o.tell(url, url))
	}
}

// judgeCap checks how many requests to a shared network left daemons within any while. Each daemon
// may be one request ahead.
func (o *oracle) judgeCap(l level, daemons int) {
	const while = 5 * time.Second
	o.mu.Lock()
	defer o.mu.Unlock()
	left, first := o.left[l.name], 0
	slices.SortFunc(left, time.Time.Compare)
	for last, at := range left {
		for at.Sub(left[first]) >= while {
			first++
		}
		if n, most := last-first+1, l.perSec*int((while+slack)/time.Millisecond)/1000+daemons; n > most {
			o.faults.addf("%s %s: %d requests within %v; %d are allowed", at.Format(clock), l.name, n, while, most)
			first = last
		}
	}
}

const clock = "15:04:05.000"

// seenFaults counts requests that arrived while another one was open, and requests that arrived too
// soon.
func (o *oracle) seenFaults() (open, soon int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open, o.faults.count - o.open
}

// last returns when an address or a name was requested last.
func (o *oracle) last(name string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.paces[name]; p != nil {
		return p.last
	}
	return time.Time{}
}

// fetched returns the number of requests, including robots.txt, and whether this URL was requested.
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
	takes  time.Duration // longest time for a page
}

func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort().Addr().Unmap()
	host, _, _ := net.SplitHostPort(r.Host)
	if !s.serves(host, local) {
		s.oracle.mu.Lock()
		s.oracle.faults.addf("%s asked at %v, which is not its address", host, local)
		s.oracle.mu.Unlock()
	}
	end := s.oracle.arrive(local, host, r.URL.Path, r.UserAgent())
	answer := "User-agent: *\nAllow: /\n"
	if r.URL.Path != "/robots.txt" {
		answer = "page\n"
		select {
		case <-time.After(s.takes * time.Duration(len(r.URL.Path)%4) / 3):
		case <-r.Context().Done():
		}
	}
	status := http.StatusOK
	if s.oracle.refuse(host, r.URL.Path) {
		status = [...]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}[len(host)%2]
		w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
	}
	end()
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// serveWeb runs a web server on each address until the test ends.
func serveWeb(t *testing.T, addrs []netip.Addr, h http.Handler) {
	t.Helper()
	srv := &http.Server{Handler: h}
	for _, addr := range addrs {
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr, webPort).String())
		if err != nil {
			t.Fatal(err)
		}
		go srv.Serve(l) // ends with Close
	}
	t.Cleanup(func() { srv.Close() })
}

// stalls measures how late this machine runs due work: a request that is seen late makes the next
// one seem early.
type stalls struct {
	mu    sync.Mutex
	late  []stall   // in the last minute, by time
	began time.Time // of the present measurement; zero: there is none
}

type stall struct {
	at   time.Time
	late time.Duration
}

// watchInterval is how long a measurement takes on a machine that is never late.
const watchInterval = 5 * time.Millisecond

// watch measures every few ms until the test ends.
func (s *stalls) watch(t *testing.T) {
	end, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		defer s.begin(time.Time{})
		for began := time.Now(); ; began = time.Now() {
			s.begin(began)
			select {
			case <-end:
				return
			case <-time.After(watchInterval):
			}
			s.note(time.Now(), time.Since(began)-watchInterval)
		}
	}()
}

func (s *stalls) begin(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = now
}

func (s *stalls) note(now time.Time, late time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, stall{now, late})
	for now.Sub(s.late[0].at) > time.Minute {
		s.late = s.late[1:]
	}
}

// worst returns the longest delay since a time. It counts one that lasts still: when this machine goes
// on after a delay, a request may be judged before the delay is noted.
func (s *stalls) worst(since time.Time) (worst time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.late) - 1; i >= 0 && s.late[i].at.After(since); i-- {
		worst = max(worst, s.late[i].late)
	}
	if !s.began.IsZero() {
		worst = max(worst, time.Since(s.began)-watchInterval)
	}
	return worst
}

// TestDelayThatLastsStill: a request that is judged right after a delay of this machine counts it.
func TestDelayThatLastsStill(t *testing.T) {
	now := time.Now()
	s := &stalls{began: now.Add(-2 * time.Second)}
	if late := s.worst(now.Add(-time.Second)); late < 2*time.Second-watchInterval {
		t.Errorf("the machine was %v late; want 2 s", late)
	}
	s.note(now, 2*time.Second-watchInterval)
	s.begin(now.Add(time.Hour))
	if late := s.worst(now.Add(-time.Second)); late != 2*time.Second-watchInterval {
		t.Errorf("the machine was %v late; want 2 s when that was noted", late)
	}
}
