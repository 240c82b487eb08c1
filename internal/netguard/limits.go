package netguard

import (
	"net"
	"net/netip"
	"slices"

	"golang.org/x/net/netutil"
)

const (
	MaxConns  = 1024     // open connections of a listener
	MaxHeader = 16 << 10 // bytes of the header of a gRPC call or an HTTP request
)

// LimitListener returns a listener that accepts at most MaxConns connections at a time; more wait
// to be accepted. If the service requires a token, it also throttles unauthenticated connections.
func LimitListener(l net.Listener, token bool) net.Listener {
	l = netutil.LimitListener(l, MaxConns)
	if token {
		l = ThrottleUnauthenticated(l)
	}
	return l
}

// InNetworks reports whether the address of a peer, "ip:port", is in one of the networks.
func InNetworks(remote string, networks []netip.Prefix) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
}
