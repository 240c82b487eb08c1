package grpcguard

import (
	"net"
	"net/netip"
	"testing"
)

// An address is looked at as the network that it is of, however the listener writes it.
func TestAdmissionAllows(t *testing.T) {
	a := admission{networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("fe80::/10")}}
	for ip, want := range map[string]bool{
		"10.1.2.3": true, "11.0.0.1": false, "::ffff:10.1.2.3": true, "::ffff:11.0.0.1": false,
		"fe80::1": true, "fd00::1": false,
	} {
		addr := &net.TCPAddr{IP: net.ParseIP(ip), Port: 5}
		if got := a.allows(meteredAddr{Addr: addr}); got != want {
			t.Errorf("%s: %t; want %t", ip, got, want)
		}
	}
	if !a.allows(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}) {
		t.Error("an address with a zone is not allowed")
	}
	if a.allows(&net.UnixAddr{Name: "@", Net: "unix"}) {
		t.Error("a Unix socket is allowed")
	}
}
