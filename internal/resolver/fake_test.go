package resolver

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// request is a query that a fake server received, and the way to answer it.
type request struct {
	msg  *dns.Msg
	tcp  bool
	from net.Addr
	send func(raw []byte)
}

func (q *request) name() string  { return strings.ToLower(q.msg.Question[0].Name) }
func (q *request) qtype() uint16 { return q.msg.Question[0].Qtype }

// reply returns an answer to q with the given records in its answer section.
func (q *request) reply(records ...string) *dns.Msg {
	m := new(dns.Msg).SetReply(q.msg)
	m.RecursionAvailable = true
	for _, text := range records {
		m.Answer = append(m.Answer, rr(text))
	}
	return m
}

func (q *request) code(rcode int) *dns.Msg {
	m := q.reply()
	m.Rcode = rcode
	return m
}

func (q *request) answer(m *dns.Msg) { q.send(packed(m)) }

func rr(text string) dns.RR {
	record, err := dns.NewRR(text)
	if err != nil {
		panic(err)
	}
	return record
}

func packed(m *dns.Msg) []byte {
	raw, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return raw
}

// fakeServer is a name server on loopback that answers as its handler does, right or wrong. The
// handler runs in a goroutine for each query.
type fakeServer struct {
	addr   string
	handle func(*request)
	conns  sync.WaitGroup

	mu  sync.Mutex
	log []*request
}

func serve(t testing.TB, handle func(*request)) *fakeServer {
	t.Helper()
	for range 20 { // until a port is free for both UDP and TCP
		udp, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.Listen("tcp", udp.LocalAddr().String())
		if err != nil {
			udp.Close()
			continue
		}
		s := &fakeServer{addr: udp.LocalAddr().String(), handle: handle}
		s.conns.Go(func() { s.serveUDP(udp) })
		s.conns.Go(func() { s.serveTCP(tcp) })
		t.Cleanup(func() {
			udp.Close()
			tcp.Close()
			s.conns.Wait()
		})
		return s
	}
	t.Fatal("no port is free for UDP and TCP")
	return nil
}

func (s *fakeServer) serveUDP(conn net.PacketConn) {
	for {
		buf := make([]byte, 4096)
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		s.got(buf[:n], &request{from: from, send: func(raw []byte) { conn.WriteTo(raw, from) }})
	}
}

func (s *fakeServer) serveTCP(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.conns.Go(func() {
			defer conn.Close()
			var size [2]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			raw := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(conn, raw); err != nil {
				return
			}
			s.got(raw, &request{tcp: true, from: conn.RemoteAddr(), send: func(raw []byte) {
				conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...))
			}}).Wait()
		})
	}
}

func (s *fakeServer) got(raw []byte, q *request) *sync.WaitGroup {
	var done sync.WaitGroup
	q.msg = new(dns.Msg)
	if q.msg.Unpack(raw) != nil || len(q.msg.Question) != 1 {
		return &done
	}
	s.mu.Lock()
	s.log = append(s.log, q)
	s.mu.Unlock()
	s.conns.Add(1)
	done.Go(func() {
		defer s.conns.Done()
		s.handle(q)
	})
	return &done
}

// requests returns the queries received so far.
func (s *fakeServer) requests() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// zone answers from records as a resolver does: it follows aliases, and answers NXDOMAIN for an
// unknown name, with the SOA record among the records.
func zone(records ...string) func(*request) {
	var rrs []dns.RR
	for _, text := range records {
		rrs = append(rrs, rr(text))
	}
	return func(q *request) {
		m, name, known := q.reply(), q.name(), false
		for again := true; again && len(m.Answer) < 20; {
			again = false
			known = false
			for _, rec := range rrs {
				if h := rec.Header(); h.Name == name && h.Rrtype != dns.TypeSOA {
					known = true
					if h.Rrtype == q.qtype() {
						m.Answer = append(m.Answer, rec)
					} else if c, ok := rec.(*dns.CNAME); ok {
						m.Answer = append(m.Answer, rec)
						name, again = c.Target, true
						break
					}
				}
			}
		}
		if !known {
			m.Rcode = dns.RcodeNameError
		}
		for _, rec := range rrs {
			if rec.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, rec)
			}
		}
		q.answer(m)
	}
}

// patient returns a configuration for tests in which nothing times out.
func patient(servers ...*fakeServer) Config {
	cfg := Config{Timeout: 20 * time.Second, HostsFile: "-", Family: "ipv4", NegativeTTL: time.Minute}
	for _, s := range servers {
		cfg.Servers = append(cfg.Servers, s.addr)
	}
	return cfg
}

// hasty returns one for tests in which tries time out. It has many tries, so that no test fails on
// a slow machine.
func hasty(servers ...*fakeServer) Config {
	cfg := patient(servers...)
	cfg.Timeout, cfg.Attempts = time.Second, 30
	return cfg
}

func start(t testing.TB, cfg Config) *Resolver {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func lookUp(t testing.TB, r *Resolver, host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return r.Lookup(ctx, host)
}

// wantAddr looks up host and expects want.
func wantAddr(t testing.TB, r *Resolver, host, want string) {
	t.Helper()
	got, err := lookUp(t, r, host)
	if err != nil || got.String() != want {
		t.Errorf("Lookup(%q) = %v, %v; want %s", host, got, err, want)
	}
}

func testRNG(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }
