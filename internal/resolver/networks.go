package resolver

import (
	"net/netip"
	"slices"
)

// network is a range of addresses and its use.
type network struct {
	prefix netip.Prefix
	use    string
}

// refused4 and refused6 follow the IANA special-purpose address registries (RFC 6890). Read-only.
var refused4 = []network{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata"}, // Azure's; in a public range
	{netip.MustParsePrefix("169.254.169.254/32"), "metadata"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
}

var refused6 = []network{
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "metadata"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

// global is the unicast space of the Internet; nat64 and sixToFour embed IPv4 addresses.
var (
	global    = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

const ownUse = "this machine's own"

// networks decides which addresses are allowed, and chooses one of several. Only own changes.
type networks struct {
	allow  []netip.Prefix
	own    *own // this machine's addresses, refused too: a server here may trust local clients
	v4, v6 bool // wanted families
}

func newNetworks(family string, allow []netip.Prefix, own *own) networks {
	n := networks{own: own, v4: family != "ipv6", v6: family != "ipv4"}
	for _, p := range allow {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		n.allow = append(n.allow, p.Masked())
	}
	return n
}

// refusal returns the use of the refused network of addr; "" if addr is allowed.
func (n networks) refusal(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if slices.ContainsFunc(n.allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return ""
	}
	switch {
	case !addr.IsValid():
		return "no address"
	case n.own.has(addr):
		return ownUse
	case addr.Is4():
		return use(refused4, addr)
	case nat64.Contains(addr):
		return n.refusal(embedded(addr, 12))
	case sixToFour.Contains(addr):
		return n.refusal(embedded(addr, 2))
	case use(refused6, addr) != "":
		return use(refused6, addr)
	case !global.Contains(addr):
		return "reserved"
	}
	return ""
}

func use(list []network, addr netip.Addr) string {
	for _, n := range list {
		if n.prefix.Contains(addr) {
			return n.use
		}
	}
	return ""
}

// embedded returns the IPv4 address at byte at of addr.
func embedded(addr netip.Addr, at int) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[at : at+4]))
}

// choose returns the lowest allowed IPv4 address, or else the lowest allowed IPv6 address. So the
// result does not depend on the order of addrs or on refused ones. If there is none, best is
// invalid, and refused reports whether addresses were refused.
func (n networks) choose(addrs []netip.Addr) (best netip.Addr, refused bool) {
	for _, a := range addrs {
		a = a.Unmap()
		switch {
		case a.Is4() && !n.v4, a.Is6() && !n.v6:
		case n.refusal(a) != "":
			refused = true
		case !best.IsValid(), a.Less(best): // IPv4 sorts before IPv6
			best = a
		}
	}
	return best, refused && !best.IsValid()
}
