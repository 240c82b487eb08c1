package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"
)

const nameTTL = 3600 // TTL of an answer, in seconds

// nameServer is the DNS server of the demo. It knows the hosts of a web and answers NXDOMAIN for
// all others, so that links to other webs lead nowhere.
type nameServer struct {
	names   map[string]netip.Addr // with a final dot
	packets net.PacketConn
	streams net.Listener
	asked   atomic.Int64
}

// listenNames listens on a port of 127.0.0.1, for UDP and TCP.
func listenNames(w *web) (*nameServer, error) {
	s := &nameServer{names: map[string]netip.Addr{}}
	for _, h := range w.hosts {
		s.names[dns.Fqdn(h.name)] = h.addr
	}
	var err error
	for range portTries {
		if s.streams, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			break
		}
		if s.packets, err = net.ListenPacket("udp", s.streams.Addr().String()); err == nil {
			return s, nil
		}
		s.streams.Close()
	}
	return nil, fmt.Errorf("name server: %w", err)
}

// addr returns the address of the server, "ip:port".
func (s *nameServer) addr() string { return s.streams.Addr().String() }

// serve answers until ctx ends. It closes the sockets.
func (s *nameServer) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both team
	both.start(cancel, func() error { return serveDNS(ctx, &dns.Server{PacketConn: s.packets, Handler: s}) })
	both.start(cancel, func() error { return serveDNS(ctx, &dns.Server{Listener: s.streams, Handler: s}) })
	return both.wait()
}

// serveDNS serves until ctx ends. All answers have been sent when it returns.
func serveDNS(ctx context.Context, srv *dns.Server) error {
	started := make(chan struct{})
	srv.NotifyStartedFunc = func() { close(started) }
	ended := make(chan error, 1)
	go func() { ended <- srv.ActivateAndServe() }()
	select {
	case <-started: // before that it cannot be shut down
	case err := <-ended:
		return fmt.Errorf("name server: %w", err)
	}
	select {
	case <-ctx.Done():
		return errors.Join(srv.Shutdown(), <-ended)
	case err := <-ended:
		return fmt.Errorf("name server: %w", err)
	}
}

// ServeDNS implements [dns.Handler].
func (s *nameServer) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	s.asked.Add(1)
	_ = w.WriteMsg(s.reply(query)) // a client that has gone asks again
}

func (s *nameServer) reply(query *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(query)
	m.Authoritative, m.RecursionAvailable = true, true
	if len(query.Question) != 1 {
		m.Rcode = dns.RcodeFormatError
		return m
	}
	q := query.Question[0]
	addr, known := s.names[strings.ToLower(q.Name)]
	switch {
	case !known:
		m.Rcode = dns.RcodeNameError
		m.Ns = append(m.Ns, authority())
	case q.Qtype == dns.TypeA:
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: nameTTL},
			A:   addr.AsSlice(),
		})
	default:
		m.Ns = append(m.Ns, authority())
	}
	return m
}

// authority returns the SOA record of negative answers (RFC 2308, section 3).
func authority() dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: nameTTL},
		Ns:  "ns.test.", Mbox: "hostmaster.test.",
		Serial: 1, Refresh: nameTTL, Retry: nameTTL, Expire: nameTTL, Minttl: nameTTL,
	}
}
