package resolver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const soa = "example. 900 IN SOA ns.example. hostmaster.example. 1 7200 3600 86400 300"

func TestLookup(t *testing.T) {
	chain := func(n int) (records []string) {
		for i := range n {
			records = append(records, "c"+strconv.Itoa(i)+".example. 60 IN CNAME c"+strconv.Itoa(i+1)+".example.")
		}
		return append(records, "c"+strconv.Itoa(n)+".example. 60 IN A 93.184.216.34")
	}
	tests := []struct {
		name    string
		family  string
		allow   string
		records []string
		host    string
		want    string
		wantErr error
	}{
		{name: "one address", records: []string{"a.example. 60 IN A 93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
		{name: "upper case and the root's dot", records: []string{"a.example. 60 IN A 93.184.216.34"}, host: "A.Example.", want: "93.184.216.34"},
		{name: "underscore", records: []string{"a_b.example. 60 IN A 93.184.216.34"}, host: "a_b.example", want: "93.184.216.34"},
		{name: "the lowest of several", records: []string{"a.example. 60 IN A 93.184.216.34", "a.example. 60 IN A 8.8.8.8", "a.example. 60 IN A 9.9.9.9"}, host: "a.example", want: "8.8.8.8"},
		{name: "any: IPv4 before IPv6", family: "any", records: []string{"a.example. 60 IN AAAA 2600::1", "a.example. 60 IN A 93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
		{name: "any: IPv6 only", family: "any", records: []string{"a.example. 60 IN AAAA 2600::2", "a.example. 60 IN AAAA 2600::1"}, host: "a.example", want: "2600::1"},
		{name: "any: refused IPv4, good IPv6", family: "any", records: []string{"a.example. 60 IN AAAA 2600::2", "a.example. 60 IN A 10.0.0.1"}, host: "a.example", want: "2600::2"},
		{name: "ipv6 leaves IPv4 alone", family: "ipv6", records: []string{"a.example. 60 IN A 93.184.216.34", "a.example. 60 IN AAAA 2600::2"}, host: "a.example", want: "2600::2"},
		{name: "ipv4 leaves IPv6 alone", family: "ipv4", records: []string{"a.example. 60 IN AAAA 2600::2"}, host: "a.example", wantErr: ErrNoHost},
		{name: "IPv4-mapped AAAA is IPv4", family: "any", records: []string{"a.example. 60 IN AAAA ::ffff:93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
		{name: "IPv4-mapped AAAA hides nothing", family: "any", records: []string{"a.example. 60 IN AAAA ::ffff:127.0.0.1"}, host: "a.example", wantErr: ErrRefused},
		{name: "refused ones are dropped", records: []string{"a.example. 60 IN A 10.1.2.3", "a.example. 60 IN A 93.184.216.34"}, host: "a.example", want: "93.184.216.34"},
		{name: "all refused", family: "any", records: []string{"a.example. 60 IN A 169.254.169.254", "a.example. 60 IN AAAA ::1"}, host: "a.example", wantErr: ErrRefused},
		{name: "allowed network", allow: "10.0.0.0/8", records: []string{"a.example. 60 IN A 10.1.2.3"}, host: "a.example", want: "10.1.2.3"},
		{name: "NXDOMAIN", records: []string{soa}, host: "a.example", wantErr: ErrNoHost},
		{name: "no addresses", family: "any", records: []string{soa, "a.example. 60 IN TXT x"}, host: "a.example", wantErr: ErrNoHost},
		{name: "no addresses, no SOA", family: "any", records: []string{"a.example. 60 IN TXT x"}, host: "a.example", wantErr: ErrNoHost},
		{name: "alias", records: chain(1), host: "c0.example", want: "93.184.216.34"},
		{name: "eight aliases", records: chain(8), host: "c0.example", want: "93.184.216.34"},
		{name: "nine aliases", records: chain(9), host: "c0.example", wantErr: ErrNoHost},
		{name: "alias loop", records: []string{"a.example. 60 IN CNAME b.example.", "b.example. 60 IN CNAME a.example."}, host: "a.example", wantErr: ErrNoHost},
		{name: "alias of itself", records: []string{"a.example. 60 IN CNAME a.example."}, host: "a.example", wantErr: ErrNoHost},
		{name: "alias of nothing", records: []string{soa, "a.example. 60 IN CNAME b.example."}, host: "a.example", wantErr: ErrNoHost},
	}
	for _, tt := range tests {
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
			if err != nil && (!strings.Contains(err.Error(), tt.host) || !strings.Contains(err.Error(), cfg.Servers[0])) {
				t.Errorf("%q does not tell host and server", err)
			}
		})
	}
}

// A server that gives one alias at a time is asked for the next.
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

// A rotating order must not move a host.
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

// The address waits for no AAAA answer that cannot matter; where it can, it does.
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

// While A is not known, AAAA does not count: a lost packet must not move a host.
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
		{name: "the address's", records: []string{"a.example. 60 IN A 9.9.9.9"}, max: time.Hour, want: time.Minute},
		{name: "the least of the chain", records: []string{"a.example. 30 IN CNAME b.example.", "b.example. 60 IN A 9.9.9.9"}, max: time.Hour, want: 30 * time.Second},
		{name: "floor", records: []string{"a.example. 30 IN A 9.9.9.9"}, min: time.Minute, max: time.Hour, want: time.Minute},
		{name: "ceiling", records: []string{"a.example. 7200 IN A 9.9.9.9"}, max: time.Hour, want: time.Hour},
		{name: "top bit means zero", records: []string{"a.example. 2147483648 IN A 9.9.9.9"}, min: time.Second, max: time.Hour, want: time.Second},
		{name: "refused has the address's", records: []string{"a.example. 60 IN A 10.0.0.1"}, max: time.Hour, want: time.Minute},
		{name: "NXDOMAIN has the SOA's least", records: []string{soa}, negative: time.Hour, want: 300 * time.Second},
		{name: "and the ceiling", records: []string{soa}, negative: time.Minute, want: time.Minute},
		{name: "an alias of nothing has the alias's", records: []string{soa, "a.example. 30 IN CNAME b.example."}, negative: time.Hour, want: 30 * time.Second},
		{name: "without an SOA briefly", records: nil, negative: time.Hour, want: failedFor},
		{name: "an SOA of elsewhere does not count", records: []string{strings.Replace(soa, "example.", "test.", 1)}, negative: time.Hour, want: failedFor},
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
	wantAddr(t, r, "a.example", "93.184.216.34") // now for a while without asking
	if _, err := lookUp(t, r, "never.seen.example"); !errors.Is(err, ErrServers) {
		t.Errorf("a name never seen: error %v, want ErrServers", err)
	}
	if s := r.Stats(); s.Stale != 1 || s.Failed != 1 {
		t.Errorf("stale %d, failed %d; want 1, 1", s.Stale, s.Failed)
	}
	if got := len(s.requests()) - asked; got != 3 {
		t.Errorf("%d queries for the last two lookups, want 3", got)
	}
}

func TestFailureIsRememberedBriefly(t *testing.T) {
	s := serve(t, func(q *request) { q.answer(q.code(dns.RcodeRefused)) })
	r := start(t, patient(s))
	for range 2 {
		_, err := lookUp(t, r, "a.example")
		if !errors.Is(err, ErrServers) || !strings.Contains(err.Error(), "a.example") {
			t.Errorf("error %v, want ErrServers of a.example", err)
		}
	}
	if n := len(s.requests()); n != 3 {
		t.Errorf("%d queries, want the 3 tries of the first lookup", n)
	}
	if _, err, ok := r.Cached([]byte("a.example")); !ok || err != ErrServers {
		t.Errorf("Cached: %v, %v; want ErrServers, true", err, ok)
	}
}

// TestOutage has a server that answered fall silent, which is not held against names.
func TestOutage(t *testing.T) {
	var away atomic.Bool
	s := serve(t, func(q *request) {
		if away.Load() {
			q.answer(q.code(dns.RcodeRefused))
			return
		}
		q.answer(q.reply(q.name() + " 60 IN A 93.184.216.34"))
	})
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", "93.184.216.34")
	away.Store(true)
	downs := 0
	for n := range 6 {
		_, err := lookUp(t, r, fmt.Sprintf("n%d.example", n))
		if !errors.Is(err, ErrServers) {
			t.Fatalf("error %v, want ErrServers", err)
		}
		if errors.Is(err, ErrDown) {
			downs++
		}
	}
	if downs == 0 || downs > 4 {
		t.Errorf("%d of 6 names are said to be unanswered because no server answers; want all but the first ones", downs)
	}
	if _, err, ok := r.Cached([]byte("n5.example")); ok {
		t.Errorf("Cached: %v for a name of the outage; want nothing", err)
	}
	away.Store(false)
	wantAddr(t, r, "n5.example", "93.184.216.34")
}
