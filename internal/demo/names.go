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

const nameTTL = 3600 // seconds that an answer about a name holds

// nameServer is the DNS of the demo: it knows the hosts of a web and that there are no others, so
// that a link to the outside leads nowhere.
type nameServer struct {
	names   map[string]netip.Addr // with a dot at the end
	packets net.PacketConn
	streams net.Listener
	asked   atomic.Int64
}

// listenNames opens a port of 127.0.0.1 for UDP and TCP.
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

// addr is where it can be asked, "ip:port".
func (s *nameServer) addr() string { return s.streams.Addr().String() }

// serve answers until ctx ends; it closes the sockets.
func (s *nameServer) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both team
	both.start(cancel, func() error { return serveDNS(ctx, &dns.Server{PacketConn: s.packets, Handler: s}) })
	both.start(cancel, func() error { return serveDNS(ctx, &dns.Server{Listener: s.streams, Handler: s}) })
	return both.wait()
}

// serveDNS serves until ctx ends, and returns after all answers have left.
func serveDNS(ctx context.Context, srv *dns.Server) error {
	started := make(chan struct{})
	srv.NotifyStartedFunc = func() { close(started) }
	ended := make(chan error, 1)
	go func() { ended <- srv.ActivateAndServe() }()
	select {
	case <-started: // before, it cannot be shut down
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
	_ = w.WriteMsg(s.reply(query)) // who has gone asks again
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

// authority goes with answers that there is nothing (RFC 2308, section 3).
func authority() dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: nameTTL},
		Ns:  "ns.test.", Mbox: "hostmaster.test.",
		Serial: 1, Refresh: nameTTL, Retry: nameTTL, Expire: nameTTL, Minttl: nameTTL,
	}
}
