package resolver

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/miekg/dns"
)

const (
	truth = "93.184.216.34"
	lie   = "6.6.6.6"
)

func (q *request) truth() *dns.Msg { return q.reply(q.name() + " 60 IN A " + truth) }
func (q *request) lie() *dns.Msg   { return q.reply(q.name() + " 60 IN A " + lie) }

// swapCase changes the case of every letter.
func swapCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

// Forged answers that do not match come first. The true answer must still be accepted.
func TestForgedAnswers(t *testing.T) {
	tests := []struct {
		name  string
		forge func(q *request) []byte
	}{
		{name: "other ID", forge: func(q *request) []byte { m := q.lie(); m.Id++; return packed(m) }},
		{name: "other name",
			forge: func(q *request) []byte { m := q.lie(); m.Question[0].Name = "b.example."; return packed(m) }},
		{name: "name in lower case", forge: func(q *request) []byte {
			m := q.lie()
			m.Question[0].Name = strings.ToLower(m.Question[0].Name)
			return packed(m)
		}},
		{name: "name in swapped case", forge: func(q *request) []byte {
			m := q.lie()
			m.Question[0].Name = swapCase(m.Question[0].Name)
			return packed(m)
		}},
		{name: "longer name", forge: func(q *request) []byte {
			m := q.lie()
			m.Question[0].Name += "example."
			return packed(m)
		}},
		{name: "other type",
			forge: func(q *request) []byte { m := q.lie(); m.Question[0].Qtype = dns.TypeAAAA; return packed(m) }},
		{name: "other class",
			forge: func(q *request) []byte { m := q.lie(); m.Question[0].Qclass = dns.ClassCHAOS; return packed(m) }},
		{name: "no question", forge: func(q *request) []byte { m := q.lie(); m.Question = nil; return packed(m) }},
		{name: "no question, SERVFAIL", forge: func(q *request) []byte {
			m := q.code(dns.RcodeServerFailure)
			m.Question = nil
			return packed(m)
		}},
		{name: "two questions", forge: func(q *request) []byte {
			m := q.lie()
			m.Question = append(m.Question, m.Question[0])
			return packed(m)
		}},
		{name: "a query", forge: func(q *request) []byte { m := q.lie(); m.Response = false; return packed(m) }},
		{name: "other opcode",
			forge: func(q *request) []byte { m := q.lie(); m.Opcode = dns.OpcodeUpdate; return packed(m) }},
		{name: "nothing", forge: func(q *request) []byte { return nil }},
		{name: "a byte short of a header", forge: func(q *request) []byte { return packed(q.lie())[:11] }},
		{name: "a header", forge: func(q *request) []byte { return packed(q.lie())[:12] }},
		{name: "half a question", forge: func(q *request) []byte { return packed(q.lie())[:20] }},
		{name: "noise", forge: func(q *request) []byte { return []byte(strings.Repeat("\xff", 600)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(q *request) {
				for range 3 {
					q.send(tt.forge(q))
				}
				q.answer(q.truth())
			})
			r := start(t, patient(s))
			wantAddr(t, r, "a.long.name.with.letters.example", truth)
			if s := r.Stats(); s.Strays != 3 || s.Queries != 1 {
				t.Errorf("strays %d, queries %d; want 3, 1", s.Strays, s.Queries)
			}
		})
	}
}

// In a matching answer, records of other names are ignored.
func TestAnswersToMoreThanWasAsked(t *testing.T) {
	s := serve(t, func(q *request) {
		m := q.reply("victim.example. 60 IN A "+lie, q.name()+" 60 CH A "+lie, q.name()+" 60 IN A "+truth,
			"x."+q.name()+" 60 IN A "+lie)
		m.Extra = append(m.Extra, rr(q.name()+" 60 IN A "+lie))
		m.Ns = append(m.Ns, rr(q.name()+" 60 IN A "+lie))
		q.answer(m)
	})
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", truth)
	if _, _, ok := r.Cached([]byte("victim.example")); ok {
		t.Error("an answer to another question was remembered")
	}
}

func TestAnswerFromElsewhere(t *testing.T) {
	s := serve(t, func(q *request) {
		other, err := net.Dial("udp", q.from.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer other.Close()
		other.Write(packed(q.lie()))
		q.answer(q.truth())
	})
	wantAddr(t, start(t, patient(s)), "a.example", truth)
}

// flooding sends guesses to the port of the first query until there is another query, which it
// answers.
func flooding(t *testing.T) *fakeServer {
	var calls atomic.Int64
	return serve(t, func(q *request) {
		if calls.Add(1) > 1 {
			q.answer(q.truth())
			return
		}
		for m := q.lie(); calls.Load() == 1; m.Id++ {
			if m.Id != q.msg.Id {
				q.answer(m)
			}
		}
	})
}

// An attacker who floods the port with guesses has few tries: the port is given up.
func TestFloodOfGuesses(t *testing.T) {
	s := flooding(t)
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", truth)
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d queries, want two", n)
	}
	if s := r.Stats(); s.Timeouts != 0 || s.Failures != 1 {
		t.Errorf("timeouts %d, failures %d; want 0, 1", s.Timeouts, s.Failures)
	}
}

func TestFloodedPortIsGivenUp(t *testing.T) {
	r := start(t, patient(flooding(t)))
	w, l := &worker{r: r, rng: testRNG(1)}, r.newLookup("a.example")
	defer func() { w.port.drop(r) }()
	if _, err := w.try(r.servers.list[0], l); !errors.Is(err, errStrays) || w.port.conn != nil {
		t.Errorf("try = %v, and the port is kept: %v; want %v and no port", err, w.port.conn != nil,
			errStrays)
	}
	if h, err := w.try(r.servers.list[0], l); h != useful || err != nil {
		t.Errorf("the next try = %v, %v; want an answer", h, err)
	}
}

// The kernel may assign the same port twice in a row, so the test compares sockets.
func TestSocketIsReplaced(t *testing.T) {
	r := start(t, patient(serve(t, zone())))
	var p port
	defer func() { p.drop(r) }()
	uses := map[net.Conn]int{}
	for range 3 * socketUses {
		if err := p.use(r, r.servers.list[0]); err != nil {
			t.Fatal(err)
		}
		if uses[p.conn]++; uses[p.conn] > socketUses {
			t.Fatalf("a socket is used more than %d times", socketUses)
		}
	}
	if len(uses) != 3 {
		t.Errorf("%d sockets for %d uses, want 3", len(uses), 3*socketUses)
	}
}

func TestQueriesAreHardToGuess(t *testing.T) {
	s := serve(t, func(q *request) { q.answer(q.truth()) })
	cfg := patient(s)
	cfg.Concurrency = 1 // one worker and its ports
	r := start(t, cfg)
	const n = 8 * socketUses
	var answered sync.WaitGroup
	for i := range n {
		answered.Add(1)
		r.Resolve(strings.Repeat("x", i%40+1)+"."+strings.Repeat("abcdefgh", i/40+1)+".example",
			func(netip.Addr, error) { answered.Done() })
	}
	answered.Wait()
	ids, ports, upper, letters := map[uint16]int{}, map[string]int{}, 0, 0
	var ones [16]int // number of ones by bit of the ID
	for _, q := range s.requests() {
		ids[q.msg.Id]++
		ports[q.from.String()]++
		for bit := range ones {
			ones[bit] += int(q.msg.Id >> bit & 1)
		}
		for _, c := range q.msg.Question[0].Name {
			if unicode.IsLetter(c) {
				letters++
			}
			if unicode.IsUpper(c) {
				upper++
			}
		}
		opt := q.msg.IsEdns0()
		if opt == nil || opt.UDPSize() != 1232 || !q.msg.RecursionDesired ||
			q.msg.Question[0].Qclass != dns.ClassINET {
			t.Fatalf("query without EDNS of 1232 bytes, RD or class IN:\n%v", q.msg)
		}
	}
	if len(ids) < n-12 { // 12 duplicates are improbable, 13 practically impossible
		t.Errorf("%d IDs in %d queries", len(ids), n)
	}
	for bit, set := range ones { // 8 sigma
		if set < n/4 || set > n*3/4 {
			t.Errorf("bit %d of the ID is set in %d of %d queries, want half", bit, set, n)
		}
	}
	if share := float64(upper) / float64(letters); share < 0.4 || share > 0.6 {
		t.Errorf("%d of %d letters are upper case, want half", upper, letters)
	}
	if len(ports) < n/socketUses/2 || len(ports) > n/4 { // ports may repeat, as the kernel chooses them at random
		t.Errorf("%d ports for %d queries, want about one for %d", len(ports), n, socketUses)
	}
}

func TestTruncated(t *testing.T) {
	s := serve(t, func(q *request) {
		m := q.truth()
		if !q.tcp {
			m = q.lie()
			m.Truncated = true
		}
		q.answer(m)
	})
	r := start(t, patient(s))
	wantAddr(t, r, "a.example", truth)
	got := s.requests()
	if len(got) != 2 || !got[1].tcp || got[0].name() != got[1].name() || got[0].qtype() != got[1].qtype() {
		t.Errorf("want the same question over UDP, then TCP; got %d queries", len(got))
	}
	if s := r.Stats(); s.Cut != 1 {
		t.Errorf("cut %d, want 1", s.Cut)
	}
}

// An answer that is cut in the middle of a record, and a set that is too large for a datagram.
func TestTruncatedBigSet(t *testing.T) {
	s := serve(t, func(q *request) {
		m := q.reply()
		for i := range 1000 {
			ip := netip.AddrFrom4([4]byte{93, 184, byte(4 + i/250), byte(250 - i%250)})
			m.Answer = append(m.Answer, rr(q.name()+" 60 IN A "+ip.String()))
		}
		raw := packed(m)
		if !q.tcp {
			raw = raw[:500]
			raw[2] |= bitCut
		}
		q.send(raw)
	})
	wantAddr(t, start(t, patient(s)), "a.example", "93.184.4.1")
}

// An error over TCP fails the try, and the next server is asked.
func TestHostileTCP(t *testing.T) {
	tests := []struct {
		name string
		tcp  func(q *request)
	}{
		{name: "hangs up", tcp: func(q *request) {}},
		{name: "other ID", tcp: func(q *request) { m := q.lie(); m.Id++; q.answer(m) }},
		{name: "other name", tcp: func(q *request) { m := q.lie(); m.Question[0].Name = "b.example."; q.answer(m) }},
		{name: "cut again", tcp: func(q *request) { m := q.lie(); m.Truncated = true; q.answer(m) }},
		{name: "empty", tcp: func(q *request) { q.send(nil) }},
		{name: "noise", tcp: func(q *request) { q.send([]byte(strings.Repeat("\xff", 600))) }},
		{name: "garbage after the question",
			tcp: func(q *request) { q.send(append(packed(q.lie())[:30], 0xc0)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := serve(t, func(q *request) {
				if q.tcp {
					tt.tcp(q)
					return
				}
				m := q.reply()
				m.Truncated = true
				q.answer(m)
			})
			good := serve(t, func(q *request) { q.answer(q.truth()) })
			r := start(t, patient(bad, good))
			wantAddr(t, r, "a.example", truth)
			wantAddr(t, r, "b.example", truth)
			if n := len(bad.requests()); n == 0 {
				t.Error("the bad server was never asked")
			}
		})
	}
}

func TestSilentTCP(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(q *request) {
		if q.tcp {
			<-release
			return
		}
		m := q.reply()
		m.Truncated = true
		q.answer(m)
	})
	defer close(release)
	cfg := patient(s)
	cfg.Timeout, cfg.Attempts = 50*time.Millisecond, 2
	if _, err := lookUp(t, start(t, cfg), "a.example"); !errors.Is(err, ErrServers) {
		t.Errorf("error %v, want ErrServers", err)
	}
}

// The three ways in which servers show that they do not know EDNS. Without it they answer, and they
// are not asked with it again.
func TestWithoutEDNS(t *testing.T) {
	tests := []struct {
		name   string
		refuse func(q *request) *dns.Msg
	}{
		{name: "FORMERR", refuse: func(q *request) *dns.Msg { return q.code(dns.RcodeFormatError) }},
		{name: "FORMERR, header only", refuse: func(q *request) *dns.Msg {
			m := q.code(dns.RcodeFormatError)
			m.Question = nil
			return m
		}},
		{name: "NOTIMP", refuse: func(q *request) *dns.Msg { return q.code(dns.RcodeNotImplemented) }},
		{name: "BADVERS", refuse: func(q *request) *dns.Msg {
			m := q.reply()
			m.SetEdns0(1232, false)
			m.Rcode = dns.RcodeBadVers
			return m
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(q *request) {
				if q.msg.IsEdns0() != nil {
					q.answer(tt.refuse(q))
					return
				}
				q.answer(q.truth())
			})
			r := start(t, patient(s))
			wantAddr(t, r, "a.example", truth)
			wantAddr(t, r, "b.example", truth)
			if n := len(s.requests()); n != 3 {
				t.Errorf("%d queries, want 3: the second lookup knows", n)
			}
		})
	}
}

// A server that answers FORMERR to everything is asked once more without EDNS, and then no more.
func TestAlwaysFormatError(t *testing.T) {
	s := serve(t, func(q *request) { q.answer(q.code(dns.RcodeFormatError)) })
	if _, err := lookUp(t, start(t, patient(s)), "a.example"); !errors.Is(err, ErrServers) ||
		!strings.Contains(err.Error(), "FORMERR") {
		t.Errorf("error %v, want ErrServers that tells of FORMERR", err)
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d queries, want one with and one without EDNS", n)
	}
}

// Answers that fail a try. The next server is asked.
func TestUselessAnswers(t *testing.T) {
	tests := []struct {
		name string
		send func(q *request)
	}{
		{name: "SERVFAIL", send: func(q *request) { q.answer(q.code(dns.RcodeServerFailure)) }},
		{name: "REFUSED", send: func(q *request) { q.answer(q.code(dns.RcodeRefused)) }},
		{name: "NOTAUTH", send: func(q *request) { q.answer(q.code(dns.RcodeNotAuth)) }},
		{name: "unknown code", send: func(q *request) { q.answer(q.code(13)) }},
		{name: "malformed", send: func(q *request) {
			raw := packed(q.lie())
			q.send(raw[:len(raw)-2])
		}},
		{name: "compression loop", send: func(q *request) {
			raw := packed(q.lie())
			at := headerLen + len(q.name()) + 1 + 4
			q.send(append(raw[:at], 0xc0, byte(at), 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 6, 6, 6, 6))
		}},
		{name: "referral", send: func(q *request) {
			m := q.reply()
			m.RecursionAvailable = false
			m.Ns = append(m.Ns, rr("example. 60 IN NS ns.example."))
			q.answer(m)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := serve(t, tt.send)
			good := serve(t, func(q *request) { q.answer(q.truth()) })
			r := start(t, patient(bad, good))
			wantAddr(t, r, "a.example", truth)
			wantAddr(t, r, "b.example", truth)
			if len(bad.requests()) != 1 || r.Stats().Failures != 1 {
				t.Errorf("the bad server was asked %d times, %d failures; want 1, 1", len(bad.requests()),
					r.Stats().Failures)
			}
		})
	}
}
