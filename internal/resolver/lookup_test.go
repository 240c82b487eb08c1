package resolver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"urlserver/internal/testkit/ports"
)

const soa = "example. 900 IN SOA ns.example. hostmaster.example. 1 7200 3600 86400 300"

// chain returns so many aliases, one of the other, and an address.
func chain(n int) (records []string) {
	for i := range n {
		records = append(records, "c"+strconv.Itoa(i)+".example. 60 IN CNAME c"+strconv.Itoa(i+1)+".example.")
	}
	return append(records, "c"+strconv.Itoa(n)+".example. 60 IN A 93.184.216.34")
}

// lookupTests has zones and the results of look-ups in them.
var lookupTests = []struct {
	name    string
	family  string
	allow   string
	records []string
	host    string
	want    string
	wantErr error
}{
	{name: "one address", records: []string{"a.example. 60 IN A 93.184.216.34"}, host: "a.example",
		want: "93.184.216.34"},
	{name: "upper case and the root's dot", records: []string{"a.example. 60 IN A 93.184.216.34"},
		host: "A.Example.", want: "93.184.216.34"},
	{name: "underscore", records: []string{"a_b.example. 60 IN A 93.184.216.34"}, host: "a_b.example",
		want: "93.184.216.34"},
	{name: "the lowest of several", records: []string{"a.example. 60 IN A 93.184.216.34",
		"a.example. 60 IN A 8.8.8.8", "a.example. 60 IN A 9.9.9.9"}, host: "a.example", want: "8.8.8.8"},
	{name: "any: IPv4 before IPv6", family: "any", records: []string{"a.example. 60 IN AAAA 2600::1",
		"a.example. 60 IN A 93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
	{name: "any: IPv6 only", family: "any", records: []string{"a.example. 60 IN AAAA 2600::2",
		"a.example. 60 IN AAAA 2600::1"}, host: "a.example", want: "2600::1"},
	{name: "any: refused IPv4, good IPv6", family: "any",
		records: []string{"a.example. 60 IN AAAA 2600::2", "a.example. 60 IN A 10.0.0.1"},
		host:    "a.example", want: "2600::2"},
	{name: "ipv6 leaves IPv4 alone", family: "ipv6",
		records: []string{"a.example. 60 IN A 93.184.216.34", "a.example. 60 IN AAAA 2600::2"},
		host:    "a.example", want: "2600::2"},
	{name: "ipv4 leaves IPv6 alone", family: "ipv4", records: []string{"a.example. 60 IN AAAA 2600::2"},
		host: "a.example", wantErr: ErrNoHost},
	{name: "IPv4-mapped AAAA is IPv4", family: "any",
		records: []string{"a.example. 60 IN AAAA ::ffff:93.184.216.34"}, host: "a.example",
		want: "93.184.216.34"},
	{name: "IPv4-mapped AAAA hides nothing", family: "any",
		records: []string{"a.example. 60 IN AAAA ::ffff:127.0.0.1"}, host: "a.example",
		wantErr: ErrRefused},
	{name: "refused ones are dropped", records: []string{"a.example. 60 IN A 10.1.2.3",
		"a.example. 60 IN A 93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
	{name: "all refused", family: "any", records: []string{"a.example. 60 IN A 169.254.169.254",
		"a.example. 60 IN AAAA ::1"}, host: "a.example", wantErr: ErrRefused},
	{name: "allowed network", allow: "10.0.0.0/8", records: []string{"a.example. 60 IN A 10.1.2.3"},
		host: "a.example", want: "10.1.2.3"},
	{name: "NXDOMAIN", records: []string{soa}, host: "a.example", wantErr: ErrNoHost},
	{name: "no addresses", family: "any", records: []string{soa, "a.example. 60 IN TXT x"},
		host: "a.example", wantErr: ErrNoHost},
	{name: "no addresses, no SOA", family: "any", records: []string{"a.example. 60 IN TXT x"},
		host: "a.example", wantErr: ErrNoHost},
	{name: "alias", records: chain(1), host: "c0.example", want: "93.184.216.34"},
	{name: "eight aliases", records: chain(8), host: "c0.example", want: "93.184.216.34"},
	{name: "nine aliases", records: chain(9), host: "c0.example", wantErr: ErrNoHost},
	{name: "alias loop", records: []string{"a.example. 60 IN CNAME b.example.",
		"b.example. 60 IN CNAME a.example."}, host: "a.example", wantErr: ErrNoHost},
	{name: "alias of itself", records: []string{"a.example. 60 IN CNAME a.example."}, host: "a.example",
		wantErr: ErrNoHost},
	{name: "alias of nothing", records: []string{soa, "a.example. 60 IN CNAME b.example."},
		host: "a.example", wantErr: ErrNoHost},
}

func TestLookup(t *testing.T) {
	for _, tt := range lookupTests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := patient(serve(t, zone(tt.records...)))
			if tt.family != "" {
				cfg.Family = tt.family
			}
			cfg.AllowNetworks = prefixes(tt.allow)
			got, err := lookUp(t, start(t, cfg), tt.host)
			if !errors.Is(err, tt.wantErr) || err == nil && got.String() != tt.want {
				t.Fatalf("Lookup(%q) = %v, %v; want %s, %v", tt.host, got, err, tt.want, tt.wantErr)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.host) ||
				!strings.Contains(err.Error(), cfg.Servers[0])) {
				t.Errorf("%q does not tell host and server", err)
			}
		})
	}
}

// A server answers with one alias at a time. The resolver asks it for each.
func TestLookupAliasOverSeveralAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		aliases int
		wantErr error
	}{
		{name: "eight", aliases: 8},
		{name: "nine", aliases: 9, wantErr: ErrNoHost},
		{name: "endless", aliases: 1 << 30, wantErr: ErrNoHost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(q *request) {
				n, _ := strconv.Atoi(strings.TrimSuffix(q.name(), ".example."))
				if n < tt.aliases {
					q.answer(q.reply(q.name() + " 60 IN CNAME " + strconv.Itoa(n+1) + ".example."))
					return
				}
				q.answer(q.reply(q.name() + " 60 IN A 93.184.216.34"))
			})
			got, err := lookUp(t, start(t, patient(s)), "0.example")
			if !errors.Is(err, tt.wantErr) || err == nil && got.String() != "93.184.216.34" {
				t.Errorf("Lookup = %v, %v; want error %v", got, err, tt.wantErr)
			}
			if n := len(s.requests()); n > maxAliases+1 {
				t.Errorf("%d queries, want at most %d", n, maxAliases+1)
			}
		})
	}
}

func TestLookupAliasToBadName(t *testing.T) {
	s := serve(t, func(q *request) { q.answer(q.reply(q.name() + ` 60 IN CNAME a\032b.example.`)) })
	if _, err := lookUp(t, start(t, patient(s)), "a.example"); !errors.Is(err, ErrNoHost) {
		t.Errorf("error %v, want ErrNoHost", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d queries, want 1", n)
	}
}

// Records in a rotating order must not change a host's address.
func TestLookupRotation(t *testing.T) {
	var turn atomic.Int64
	set := []string{"93.184.216.34", "9.9.9.9", "8.8.8.8"}
	r := start(t, patient(serve(t, func(q *request) {
		n := int(turn.Add(1))
		m := q.reply()
		for i := range set {
			m.Answer = append(m.Answer, rr(q.name()+" 0 IN A "+set[(i+n)%len(set)]))
		}
		q.answer(m)
	})))
	for range 6 {
		wantAddr(t, r, "a.example", "8.8.8.8")
	}
	if turn.Load() != 6 {
		t.Errorf("%d queries, want 6: the TTL is zero", turn.Load())
	}
}

// An address does not wait for an AAAA answer that cannot change it; it does wait for one that can.
func TestLookupSilentAAAA(t *testing.T) {
	s := serve(t, func(q *request) {
		if q.qtype() == dns.TypeA && q.name() == "four.example." {
			q.answer(q.reply(q.name() + " 60 IN A 93.184.216.34"))
		} else if q.qtype() == dns.TypeA {
			q.answer(q.reply())
		}
	})
	cfg := patient(s)
	cfg.Family, cfg.Timeout, cfg.Attempts = "any", 100*time.Millisecond, 20
	r := start(t, cfg)
	wantAddr(t, r, "four.example", "93.184.216.34")
	if _, err := lookUp(t, r, "none.example"); !errors.Is(err, ErrServers) {
		t.Errorf("no A and AAAA unknown: error %v, want ErrServers", err)
	}
}

// If the A answer is missing, the AAAA answer does not count: a lost packet must not change a
// host's address.
func TestLookupSilentA(t *testing.T) {
	s := serve(t, func(q *request) {
		if q.qtype() == dns.TypeAAAA {
			q.answer(q.reply(q.name() + " 60 IN AAAA 2600::1"))
		}
	})
	cfg := patient(s)
	cfg.Family, cfg.Timeout, cfg.Attempts = "any", 50*time.Millisecond, 2
	if got, err := lookUp(t, start(t, cfg), "a.example"); !errors.Is(err, ErrServers) {
		t.Errorf("Lookup = %v, %v; want ErrServers", got, err)
	}
}

func TestLookupTTL(t *testing.T) {
	tests := []struct {
		name     string
		records  []string
		min, max time.Duration
		negative time.Duration
		want     time.Duration
	}{
		{name: "the address's", records: []string{"a.example. 60 IN A 9.9.9.9"}, max: time.Hour,
			want: time.Minute},
		{name: "the least of the chain", records: []string{"a.example. 30 IN CNAME b.example.",
			"b.example. 60 IN A 9.9.9.9"}, max: time.Hour, want: 30 * time.Second},
		{name: "floor", records: []string{"a.example. 30 IN A 9.9.9.9"}, min: time.Minute, max: time.Hour,
			want: time.Minute},
		{name: "ceiling", records: []string{"a.example. 7200 IN A 9.9.9.9"}, max: time.Hour, want: time.Hour},
		{name: "top bit means zero", records: []string{"a.example. 2147483648 IN A 9.9.9.9"},
			min: time.Second, max: time.Hour, want: time.Second},
		{name: "refused has the address's", records: []string{"a.example. 60 IN A 10.0.0.1"},
			max: time.Hour, want: time.Minute},
		{name: "NXDOMAIN has the SOA's least", records: []string{soa}, negative: time.Hour,
			want: 300 * time.Second},
		{name: "and the ceiling", records: []string{soa}, negative: time.Minute, want: time.Minute},
		{name: "an alias of nothing has the alias's",
			records: []string{soa, "a.example. 30 IN CNAME b.example."}, negative: time.Hour,
			want: 30 * time.Second},
		{name: "without an SOA briefly", records: nil, negative: time.Hour, want: briefly},
		{name: "an SOA of elsewhere does not count",
			records: []string{strings.Replace(soa, "example.", "test.", 1)}, negative: time.Hour,
			want: briefly},
		{name: "negative answers are not remembered", records: []string{soa}, negative: 0, want: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := patient(serve(t, zone(tt.records...)))
			cfg.MinTTL, cfg.MaxTTL, cfg.NegativeTTL = tt.min, tt.max, tt.negative
			r := start(t, cfg)
			w := &worker{r: r, rng: testRNG(1)}
			defer w.port.drop(r)
			if o := w.run("a.example"); o.ttl != tt.want {
				t.Errorf("remembered for %v, want %v (%v, %v)", o.ttl, tt.want, o.addr, o.err)
			}
		})
	}
}

func TestStale(t *testing.T) {
	var broken atomic.Bool
	s := serve(t, func(q *request) {
		if broken.Load() {
			q.answer(q.code(dns.RcodeServerFailure))
			return
		}
		q.answer(q.reply(q.name() + " 0 IN A 93.184.216.34"))
	})
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", "93.184.216.34")
	broken.Store(true)
	wantAddr(t, r, "a.example", "93.184.216.34")
	asked := len(s.requests())
	wantAddr(t, r, "a.example", "93.184.216.34") // from the cache for a while
	if _, err := lookUp(t, r, "never.seen.example"); !errors.Is(err, ErrServers) {
		t.Errorf("a name never seen: error %v, want ErrServers", err)
	}
	if s := r.Stats(); s.Stale != 1 || s.Failed != 1 {
		t.Errorf("stale %d, failed %d; want 1, 1", s.Stale, s.Failed)
	}
	if got := len(s.requests()) - asked; got != 1 {
		t.Errorf("%d queries for the last two lookups, want 1", got)
	}
}

// The first name proves that the server works: before that, no failure counts against a name.
func TestFailureIsRememberedBriefly(t *testing.T) {
	s := serve(t, func(q *request) {
		if q.name() == "good.example." {
			q.answer(q.truth())
			return
		}
		q.answer(q.code(dns.RcodeRefused))
	})
	r := start(t, patient(s))
	wantAddr(t, r, "good.example", truth)
	_, err := lookUp(t, r, "a.example")
	if !errors.Is(err, ErrServers) || errors.Is(err, ErrDown) ||
		!strings.Contains(err.Error(), "a.example") || !strings.Contains(err.Error(), "REFUSED") {
		t.Errorf("error %v, want ErrServers of a.example with REFUSED", err)
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d queries, want one for each name", n)
	}
	if left := r.CachedFor([]byte("A.example.")); left > failedFor {
		t.Errorf("the failure is remembered for %v, want %v at most", left, failedFor)
	}
}

// TestBrokenZone: the server fails for many names in a row. That does not count against other
// names.
func TestBrokenZone(t *testing.T) {
	s := serve(t, func(q *request) {
		if strings.HasSuffix(q.name(), ".broken.") {
			q.answer(q.code(dns.RcodeServerFailure))
			return
		}
		q.answer(q.truth())
	})
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", truth)
	for n := range 50 {
		if _, err := lookUp(t, r, fmt.Sprintf("n%d.broken", n)); !errors.Is(err, ErrServers) ||
			errors.Is(err, ErrDown) {
			t.Fatalf("name %d of the broken zone: error %v, want ErrServers and not ErrDown", n, err)
		}
	}
	wantAddr(t, r, "b.example", truth)
	if h := r.Health(); h.Down {
		t.Errorf("health is %+v; want servers that can be used", h)
	}
}

// TestNoUsefulAnswerYet: the server fails for all names from the start, and later for some. Only
// then do names fail.
func TestNoUsefulAnswerYet(t *testing.T) {
	var works atomic.Bool
	s := serve(t, func(q *request) {
		if works.Load() && q.name() != "broken.example." {
			q.answer(q.truth())
			return
		}
		q.answer(q.code(dns.RcodeServerFailure))
	})
	r := start(t, patient(s))
	if h := r.Health(); h.Down || len(h.Servers) != 1 || h.Servers[0] != s.addr {
		t.Errorf("health before the first look-up is %+v; want one server, %s, of which "+
			"nothing is known", h, s.addr)
	}
	began := time.Now()
	for n := range 3 {
		if _, err := lookUp(t, r, fmt.Sprintf("n%d.example", n)); !errors.Is(err, ErrDown) {
			t.Errorf("error %v before any useful answer; want ErrDown", err)
		}
	}
	if h := r.Health(); !h.Down || h.Since.Before(began) || !strings.Contains(h.Why, "SERVFAIL") ||
		!strings.Contains(h.Why, s.addr) {
		t.Errorf("health is %+v; want that nobody is of use since %v, because of SERVFAIL by %s", h,
			began, s.addr)
	}
	works.Store(true)
	wantAddr(t, r, "n0.example", truth)
	if _, err := lookUp(t, r, "broken.example"); !errors.Is(err, ErrServers) || errors.Is(err, ErrDown) {
		t.Errorf("error %v after a useful answer; want ErrServers and not ErrDown", err)
	}
	if h := r.Health(); h.Down {
		t.Errorf("health is %+v; want servers that can be used", h)
	}
}

// TestOutage: a server that has answered becomes silent, and later answers again. Names do not fail
// for that.
func TestOutage(t *testing.T) {
	var away atomic.Bool
	s := serve(t, func(q *request) {
		if !away.Load() {
			q.answer(q.truth())
		}
	})
	cfg := patient(s)
	cfg.Timeout = time.Second
	r := start(t, cfg)
	wantAddr(t, r, "a.example", truth)
	away.Store(true)
	down := false
	for n := 0; n < 10 && !down; n++ { // the first ones fail before the probe does
		_, err := lookUp(t, r, fmt.Sprintf("n%d.example", n))
		if !errors.Is(err, ErrServers) {
			t.Fatalf("error %v, want ErrServers", err)
		}
		down = errors.Is(err, ErrDown)
	}
	if h := r.Health(); !down || !h.Down {
		t.Errorf("health is %+v, and names say that no server can be used: %v; want that none can", h, down)
	}
	if _, err, ok := r.Cached([]byte("n9.example")); ok {
		t.Errorf("Cached: %v for a name of the outage; want nothing", err)
	}
	away.Store(false)
	cfg.Attempts = 30
	wantAddr(t, r, "n9.example", truth)
	if h := r.Health(); h.Down {
		t.Errorf("health is %+v once it answers again", h)
	}
}

// TestClosedPort: nothing listens any longer where a server was.
func TestClosedPort(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", ports.Free(t, 1)) // no socket that asks gets this port
	cfg := patient()
	cfg.Servers = []string{addr}
	r := start(t, cfg)
	for range 3 {
		if _, err := lookUp(t, r, "a.example"); !errors.Is(err, ErrDown) {
			t.Errorf("error %v, want ErrDown", err)
		}
	}
	if h := r.Health(); !h.Down || !strings.Contains(h.Why, addr) {
		t.Errorf("health is %+v; want that %s cannot be used", h, addr)
	}
}

// TestNoWay: a server that has answered cannot be reached, for example because there is no route.
// Names do not fail for that.
func TestNoWay(t *testing.T) {
	s := serve(t, func(q *request) { q.answer(q.truth()) })
	for _, c := range []struct {
		err  error
		down bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, true},
		{&net.OpError{Op: "read", Err: syscall.EHOSTUNREACH}, true},
		{&net.OpError{Op: "write", Err: syscall.EPERM}, true}, // a firewall
		{&net.OpError{Op: "dial", Err: syscall.EMFILE}, true},
		{errStrays, false},
		{errors.New("cannot be asked for"), false},
	} {
		r := start(t, patient(s))
		wantAddr(t, r, "a.example", truth)
		r.judge(r.servers.list[0], silence, c.err, r.era())
		if h := r.Health(); h.Down != c.down {
			t.Errorf("after %v a server that answered before counts as unusable: %v, want %v",
				c.err, h.Down, c.down)
		}
		wantAddr(t, r, "b.example", truth)
		if h := r.Health(); h.Down {
			t.Errorf("after %v health is %+v once it answers again", c.err, h)
		}
	}
}

// TestSilentNames: more names than the window allows are in a zone whose servers are silent, and
// then a good name. A probe shows that the name server works, so the window does not shrink and the
// server is not down. Each name ends after one try, because others wait.
func TestSilentNames(t *testing.T) {
	const wide, silent = 4 * firstWindow, 16 * firstWindow
	s := serve(t, func(q *request) {
		if !strings.HasSuffix(q.name(), ".silent.") {
			q.answer(q.truth())
		}
	})
	cfg := patient(s)
	cfg.Timeout, cfg.Attempts, cfg.Concurrency = time.Second, 100, wide
	r := start(t, cfg)
	for n := range wide { // each answer widens the window by one
		wantAddr(t, r, fmt.Sprintf("g%d.example", n), truth)
	}
	errs := make(chan error, silent)
	for n := range silent {
		r.Resolve(fmt.Sprintf("n%d.silent", n), func(_ netip.Addr, err error) { errs <- err })
	}
	wantAddr(t, r, "b.example", truth) // with 100 tries for each name before it that would take minutes
	for range silent - wide {
		if err := <-errs; !errors.Is(err, ErrServers) || errors.Is(err, ErrDown) {
			t.Errorf("error %v of a name that nobody answers for; want ErrServers and not ErrDown", err)
		}
	}
	if h := r.Health(); h.Down {
		t.Errorf("health is %+v; want a server that can be used", h)
	}
	if n := r.Stats().Window; n != wide {
		t.Errorf("%d names may be asked at once, want %d as before", n, wide)
	}
}
