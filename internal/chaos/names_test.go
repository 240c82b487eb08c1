package chaos

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

// world is the hosts and their addresses. Of ten hosts, six have one address, two have another
// address for each daemon, and two another one at each look-up. Every other address is on a shared
// network: daemons find some hosts there, and others do not.
type world struct {
	net   byte // addresses are in 127.net.0.0/16, those of the shared network in 127.net.128.0/17
	hosts []string
	addrs []netip.Addr
}

// turns is the number of addresses of a host that has several.
const turns = 3

func newWorld(net byte, hosts int) *world {
	w := &world{net: net}
	for i := range hosts {
		w.hosts = append(w.hosts, fmt.Sprintf("h%d.chaos.test", i))
	}
	for i := range max(hosts/2, turns) {
		w.addrs = append(w.addrs, netip.AddrFrom4([4]byte{127, net, byte(1 + i/250 + i%2*128),
			byte(1 + i%250)}))
	}
	return w
}

// own returns an address that no host has.
func (w *world) own(n int) string { return fmt.Sprintf("127.%d.0.%d", w.net, n) }

// at returns the address of a host; the n-th if it has several.
func (w *world) at(host, n int) netip.Addr { return w.addrs[(host/2+n)%len(w.addrs)] }

// network returns the shared network.
func (w *world) network() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{127, w.net, 128, 0}), 17)
}

// mayShare reports whether a daemon may find a host on the shared network.
func (w *world) mayShare(host int) bool {
	for n := range turns {
		if w.network().Contains(w.at(host, n)) && (n == 0 || w.several(host)) {
			return true
		}
	}
	return false
}

func (w *world) several(host int) bool { return host%10 >= 6 }

// places returns the names under which an oracle knows a host's groups.
func (w *world) places(host int) (names []string) {
	names = append(names, w.hosts[host], w.at(host, 0).String())
	for n := 1; n < turns && w.several(host); n++ {
		names = append(names, w.at(host, n).String())
	}
	return names
}

func (w *world) number(host string) (n int, known bool) {
	_, err := fmt.Sscanf(strings.ToLower(host), "h%d.chaos.test", &n)
	return n, err == nil && n >= 0 && n < len(w.hosts)
}

func (w *world) serves(host string, addr netip.Addr) bool {
	n, known := w.number(host)
	for i := 0; known && i < turns; i++ {
		if w.at(n, i) == addr && (i == 0 || w.several(n)) {
			return true
		}
	}
	return false
}

// serveNames runs a name server for one daemon until the test ends.
func (w *world) serveNames(t *testing.T, daemon int) (addr string) {
	t.Helper()
	addr = net.JoinHostPort(w.own(10+daemon), "5300")
	packets, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	started, ended := make(chan struct{}), make(chan struct{})
	srv := &dns.Server{PacketConn: packets, NotifyStartedFunc: func() { close(started) }}
	srv.Handler = dns.HandlerFunc(func(out dns.ResponseWriter, query *dns.Msg) {
		_ = out.WriteMsg(w.reply(query, daemon, int(asked.Add(1)))) // a client that has gone asks again
	})
	go func() { defer close(ended); _ = srv.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = srv.Shutdown(); <-ended })
	return addr
}

func (w *world) reply(query *dns.Msg, daemon, asked int) *dns.Msg {
	m := new(dns.Msg).SetReply(query)
	q := query.Question[0]
	n, known := w.number(q.Name)
	switch {
	case !known:
		m.Rcode = dns.RcodeNameError
		return m
	case q.Qtype != dns.TypeA:
		return m
	}
	addr := w.at(n, 0)
	switch n % 10 {
	case 6, 7:
		addr = w.at(n, daemon%turns)
	case 8, 9:
		addr = w.at(n, asked%turns)
	}
	m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA,
		Class: dns.ClassINET, Ttl: 1}, A: addr.AsSlice()})
	return m
}
