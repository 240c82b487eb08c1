package demo

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// startNames serves the names of hosts until the test ends.
func startNames(t *testing.T, hosts ...host) *nameServer {
	t.Helper()
	s, err := listenNames(newWeb("", 80, hosts))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func TestNames(t *testing.T) {
	s := startNames(t, host{name: "a.test", addr: loopback(3)})
	tests := []struct {
		name  string
		query string
		qtype uint16
		rcode int
		addr  string
	}{
		{name: "known", query: "a.test.", qtype: dns.TypeA, addr: "127.77.0.3"},
		{name: "in any case", query: "A.TesT.", qtype: dns.TypeA, addr: "127.77.0.3"},
		{name: "no IPv6 address", query: "a.test.", qtype: dns.TypeAAAA},
		{name: "unknown", query: "b.test.", qtype: dns.TypeA, rcode: dns.RcodeNameError},
		{name: "of the outside", query: "example.com.", qtype: dns.TypeAAAA, rcode: dns.RcodeNameError},
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, test := range tests {
			t.Run(network+" "+test.name, func(t *testing.T) {
				client := dns.Client{Net: network, Timeout: 5 * time.Minute}
				m, _, err := client.ExchangeContext(t.Context(),
					new(dns.Msg).SetQuestion(test.query, test.qtype), s.addr())
				if err != nil {
					t.Fatal(err)
				}
				if m.Rcode != test.rcode {
					t.Errorf("rcode %d, want %d", m.Rcode, test.rcode)
				}
				if test.addr == "" {
					if len(m.Answer) != 0 || len(m.Ns) != 1 {
						t.Errorf("answer %v, authority %v; want none, and one SOA", m.Answer, m.Ns)
					}
					return
				}
				if a, ok := m.Answer[0].(*dns.A); !ok || !a.A.Equal(net.ParseIP(test.addr)) ||
					a.Hdr.Name != test.query {
					t.Errorf("answer %v, want %s", m.Answer, test.addr)
				}
			})
		}
	}
	if n := s.asked.Load(); n != int64(2*len(tests)) {
		t.Errorf("asked %d times, want %d", n, 2*len(tests))
	}
}

func TestNamesWithoutQuestion(t *testing.T) {
	if m := new(nameServer).reply(new(dns.Msg)); m.Rcode != dns.RcodeFormatError {
		t.Errorf("rcode %d, want format error", m.Rcode)
	}
}

func TestNamesFail(t *testing.T) {
	s, err := listenNames(newWeb("", 80, nil))
	if err != nil {
		t.Fatal(err)
	}
	s.packets.Close()
	if err := s.serve(t.Context()); err == nil {
		t.Error("serve on a closed socket: no error")
	}
}
