package resolver

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func prefixes(text string) (list []netip.Prefix) {
	for _, field := range strings.Fields(text) {
		list = append(list, netip.MustParsePrefix(field))
	}
	return list
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		allow   string
		refused string // addresses
		fine    string
	}{
		{
			name: "IPv4",
			refused: `0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 169.254.0.1
				169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.1 192.0.2.1 192.168.0.1 192.168.255.255 198.18.0.0
				198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 192.88.99.1`,
			fine: `1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
				172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
				198.51.99.255 203.0.112.255 223.255.255.255`,
		},
		{
			name: "IPv6",
			refused: `:: ::1 ::2 ::a00:1 fc00::1 fdff::1 fd00:ec2::254 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 2001:db8::1 3fff::1
				2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 100::1 5f00::1 4000::1 64:ff9b:1::1`,
			fine: `2000::1 2001:200::1 2001:4860:4860::8888 2600::1 2a00::1 3ffe:ffff::1`,
		},
		{
			name: "IPv4 inside IPv6",
			refused: `::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
				2002:a00:1:: 2002:7f00:1::1 2002:a9fe:a9fe::1 2002:c0a8:101::1`,
			fine: `::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1`,
		},
		{
			name:    "allowed",
			allow:   "127.0.0.0/8 ::1/128 ::ffff:10.0.0.0/104 fd00:ec2::254/128",
			refused: "192.168.0.1 ::2 fd00:ec2::253",
			fine: "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1 10.9.9.9 ::ffff:10.0.0.1 " +
				"64:ff9b::10.0.0.1 2002:a00:1:: fd00:ec2::254",
		},
		{name: "allowed network with host bits", allow: "10.1.2.3/8", refused: "127.0.0.1", fine: "10.9.9.9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, Config{HostsFile: "-", AllowNetworks: prefixes(tt.allow)})
			for _, text := range strings.Fields(tt.refused) {
				addr := netip.MustParseAddr(text)
				if err := r.Check(addr); !errors.Is(err, ErrRefused) ||
					!strings.Contains(err.Error(), addr.String()) {
					t.Errorf("Check(%s) = %v, want ErrRefused that names it", text, err)
				}
			}
			for _, text := range strings.Fields(tt.fine) {
				if err := r.Check(netip.MustParseAddr(text)); err != nil {
					t.Errorf("Check(%s) = %v, want nil", text, err)
				}
			}
		})
	}
	if err := start(t, Config{HostsFile: "-"}).Check(netip.Addr{}); !errors.Is(err, ErrRefused) {
		t.Errorf("Check of no address = %v, want ErrRefused", err)
	}
}

// The chosen address does not depend on the order, is allowed and of a wanted family, and is IPv4
// if possible.
func TestChooseAnyOrder(t *testing.T) {
	pool := strings.Fields(
		"10.0.0.1 8.8.8.8 9.9.9.9 ::ffff:1.1.1.1 127.0.0.1 2600::1 2600::2 ::1 2a00::1 ::ffff:10.0.0.1")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, family := range []string{"any", "ipv4", "ipv6"} {
		n := newNetworks(family, nil, newOwn(func() ([]net.Addr, error) { return nil, nil }))
		for range 2000 {
			var addrs []netip.Addr
			for range rng.IntN(6) {
				addrs = append(addrs, netip.MustParseAddr(pool[rng.IntN(len(pool))]))
			}
			best, refused := n.choose(addrs)
			rng.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
			if again, r := n.choose(addrs); again != best || r != refused {
				t.Fatalf("%s: choose depends on order: %v and %v of %v", family, best, again, addrs)
			}
			if want := slowChoice(n, family, addrs); best != want {
				t.Fatalf("%s: choose(%v) = %v, want %v", family, addrs, best, want)
			}
			if best.IsValid() && refused {
				t.Fatalf("%s: choose(%v): refused although there is %v", family, addrs, best)
			}
		}
	}
}

func slowChoice(n networks, family string, addrs []netip.Addr) (best netip.Addr) {
	for _, v4 := range []bool{true, false} {
		if v4 && family == "ipv6" || !v4 && family == "ipv4" {
			continue
		}
		for _, a := range addrs {
			a = a.Unmap()
			if a.Is4() == v4 && n.refusal(a) == "" && (!best.IsValid() || a.Compare(best) < 0) {
				best = a
			}
		}
		if best.IsValid() {
			return best
		}
	}
	return best
}
