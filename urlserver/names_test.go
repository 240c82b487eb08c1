package urlserver

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/testkit/ports"
)

// nameServer answers names below good.test with an address, names below none.test with NXDOMAIN,
// and others with SERVFAIL.
type nameServer struct {
	addr string

	mu    sync.Mutex // guards all below
	moved netip.Addr // address of all names below good.test; invalid: each has its own
	asked int
}

// serveNames listens at addr until the test ends.
func serveNames(t *testing.T, addr string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{addr: conn.LocalAddr().String()}
	s := &dns.Server{PacketConn: conn, Handler: n}
	ended := make(chan error, 1)
	go func() { ended <- s.ActivateAndServe() }()
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	return n
}

func (n *nameServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	question := q.Question[0]
	name := strings.ToLower(question.Name)
	n.mu.Lock()
	n.asked++
	addr := n.moved
	n.mu.Unlock()
	switch {
	case strings.HasSuffix(name, ".none.test."):
		m.Rcode = dns.RcodeNameError
	case !strings.HasSuffix(name, ".good.test."):
		m.Rcode = dns.RcodeServerFailure
	case question.Qtype == dns.TypeA:
		if !addr.IsValid() {
			no := 0
			_, _ = fmt.Sscanf(name, "h%d.", &no)
			addr = netip.AddrFrom4([4]byte{127, 1, 0, byte(1 + no)})
		}
		m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeA,
			Class: dns.ClassINET, Ttl: 1}, A: addr.AsSlice()})
	}
	_ = w.WriteMsg(m)
}

func (r *rig) putHosts(zone string, from, to int) {
	r.t.Helper()
	var urls []string
	for n := from; n < to; n++ {
		urls = append(urls, fmt.Sprintf("http://h%d.%s/", n, zone))
	}
	r.put(urls...)
}

// until waits until is returns true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func (r *rig) outcomes(kind docindex.Kind) int { return r.store.Stats().Outcomes[kind] }

// TestBrokenZone puts names of a zone that answers SERVFAIL, five times as many as may wait,
// between good hosts.
func TestBrokenZone(t *testing.T) {
	t.Parallel() // it mostly waits
	names := serveNames(t, "127.0.0.1:0")
	r := newRig(t, func(c *configs.Config) {
		c.Resolver.Servers, c.Resolver.GiveUp = []string{names.addr}, 20*time.Second
		c.DocIndex.Batch, c.QueueCount = 5, 16
	})
	s := r.spider()
	r.putHosts("good.test", 0, 5)
	r.putHosts("broken.test", 0, 100)
	r.putHosts("none.test", 0, 3)
	r.putHosts("good.test", 5, 15)
	for range 15 {
		f := s.next()
		s.say("%s DONE 200", f[0])
	}
	if n := r.outcomes(docindex.DNS); n > 3 {
		t.Errorf("%d documents have ended as dns; want only those of names that do not exist", n)
	}
	until(t, "explain tells of SERVFAIL, and until when that is borne", func() bool {
		x, known, err := r.d.Explain(t.Context(), "h0.broken.test")
		return err == nil && known && strings.Contains(x.Why, "SERVFAIL") && strings.Contains(x.Why, "resolver.give_up")
	})
	if reasons := r.d.Ready(t.Context()); len(reasons) > 0 {
		t.Errorf("not ready: %q", reasons)
	}
	until(t, "all names of the broken zone given up", func() bool { return r.outcomes(docindex.DNS) == 103 })
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestStartBeforeDNS starts a daemon before its name server listens.
func TestStartBeforeDNS(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", ports.Free(t, 1)) // no socket that asks gets this port
	r := newRig(t, func(c *configs.Config) {
		c.Resolver.Servers, c.Resolver.GiveUp = []string{addr}, time.Second
		c.DocIndex.Batch, c.QueueCount = 5, 16
	})
	s := r.spider()
	r.putHosts("good.test", 0, 50)
	until(t, "readyz names the server that cannot be used", func() bool {
		return strings.Contains(strings.Join(r.d.Ready(t.Context()), "; "), "no name server can be used since ")
	})
	if text := strings.Join(r.d.Ready(t.Context()), "; "); !strings.Contains(text, addr) {
		t.Errorf("readyz: %q does not tell %s", text, addr)
	}
	time.Sleep(3 * time.Second) // longer than resolver.give_up
	if n := r.outcomes(docindex.DNS); n > 0 {
		t.Errorf("%d documents have ended while there was no name server", n)
	}
	x, known, err := r.d.Explain(t.Context(), "h0.good.test")
	if err != nil || !known || strings.Count(x.Why, "no name server can be used") != 1 {
		t.Errorf("explain: known %t, %q, %v; want the reason once", known, x.Why, err)
	}
	serveNames(t, addr)
	for range 50 {
		f := s.next()
		s.say("%s DONE 200", f[0])
	}
	until(t, "all documents done", func() bool { return r.outcomes(docindex.Done) == 50 })
	if reasons := r.d.Ready(t.Context()); len(reasons) > 0 {
		t.Errorf("not ready: %q", reasons)
	}
	if n := r.outcomes(docindex.DNS); n > 0 {
		t.Errorf("%d documents have ended as dns", n)
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestHostThatMoves changes the address of a host that always has documents held. When the TTL of
// the old address has passed, requests go only to the new one.
func TestHostThatMoves(t *testing.T) {
	names := serveNames(t, "127.0.0.1:0")
	r := newRig(t, func(c *configs.Config) {
		c.Resolver.Servers, c.Resolver.MinTTL = []string{names.addr}, time.Second
	})
	s := r.spider()
	const docs = 4000
	var urls []string
	for n := range docs {
		urls = append(urls, fmt.Sprintf("http://h0.good.test/%d", n))
	}
	r.put(urls...)
	after := netip.MustParseAddr("127.1.0.77")
	moved, began := 0, time.Now()
	for n := range docs {
		f := s.next()
		switch {
		case f[2] == after.String():
			moved++
		case f[2] != "127.1.0.1" || moved > 0:
			t.Fatalf("line %d is for %s, after %d for %v", n, f[2], moved, after)
		}
		if n == 10 {
			names.mu.Lock()
			names.moved = after
			names.mu.Unlock()
		}
		if n > 10 && moved == 0 {
			time.Sleep(time.Millisecond) // so that the TTL passes before all are done
		}
		s.say("%s DONE 200", f[0])
		if moved == 10 {
			break
		}
	}
	if moved < 10 {
		t.Errorf("%d lines for the new address; want 10", moved)
	}
	names.mu.Lock()
	defer names.mu.Unlock()
	if took := time.Since(began); names.asked > 2*int(took/time.Second+2) { // one for A and one for AAAA
		t.Errorf("%d DNS questions in %v; want two a TTL of one second", names.asked, took)
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
