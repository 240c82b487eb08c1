package resolver

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	resolvConf    = "/etc/resolv.conf"
	defaultHosts  = "/etc/hosts"
	noHosts       = "-"
	maxConcurrent = 1 << 15 // each needs a socket or two
	maxAttempts   = 100
	maxServers    = 64
	maxConfigFile = 32 << 20 // bytes of hosts file; block lists reach several MiB
)

// Config configures a Resolver. The zero value works; durations are not negative.
type Config struct {
	// "ip:port" or "ip"; none: the nameservers of /etc/resolv.conf, or 127.0.0.1:53
	Servers     []string
	Timeout     time.Duration // of one try at one server; 0 means 2 s
	Attempts    int           // failed tries after which a look-up fails; 0 means 3
	Concurrency int           // number of concurrent look-ups; 0 means 256
	MinTTL      time.Duration // addresses are cached at least so long
	MaxTTL      time.Duration // and at most so long; 0 means 24 h
	NegativeTTL time.Duration // "no such host" is cached at most so long; 0: not at all
	Family      string        // "any" (IPv4 preferred) or "", "ipv4", "ipv6"
	// networks whose addresses are allowed although they are not public, or are this machine's
	AllowNetworks []netip.Prefix
	Interfaces    func() ([]net.Addr, error) // this machine's addresses; nil means net.InterfaceAddrs
	HostsFile     string                     // "" means /etc/hosts, "-" none; New fails if a named file is missing
}

// complete replaces zero values by defaults, and returns the servers.
func (c Config) complete() (Config, []netip.AddrPort, error) {
	if err := c.validate(); err != nil {
		return c, nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Second
	}
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.Concurrency == 0 {
		c.Concurrency = 256
	}
	if c.Interfaces == nil {
		c.Interfaces = net.InterfaceAddrs
	}
	if c.MaxTTL == 0 {
		c.MaxTTL = max(24*time.Hour, c.MinTTL)
	}
	addrs, err := c.findServers()
	return c, addrs, err
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Timeout >= 0, "timeout %v: must not be negative", c.Timeout)
	check(c.Attempts >= 0 && c.Attempts <= maxAttempts, "attempts %d: must be 0 to %d", c.Attempts,
		maxAttempts)
	check(c.Concurrency >= 0 && c.Concurrency <= maxConcurrent, "concurrency %d: must be 0 to %d",
		c.Concurrency, maxConcurrent)
	check(c.MinTTL >= 0, "min TTL %v: must not be negative", c.MinTTL)
	check(c.MaxTTL == 0 || c.MaxTTL >= c.MinTTL, "max TTL %v: must not be below min TTL %v",
		c.MaxTTL, c.MinTTL)
	check(c.NegativeTTL >= 0, "negative TTL %v: must not be negative", c.NegativeTTL)
	check(len(c.Servers) <= maxServers, "%d servers: at most %d", len(c.Servers), maxServers)
	switch c.Family {
	case "", "any", "ipv4", "ipv6":
	default:
		check(false, "family %q: must be any, ipv4 or ipv6", c.Family)
	}
	for _, p := range c.AllowNetworks {
		check(p.IsValid(), "allowed network %v: not a network", p)
	}
	return errors.Join(errs...)
}

func (c Config) findServers() ([]netip.AddrPort, error) {
	var addrs []netip.AddrPort
	var errs []error
	for _, s := range c.Servers {
		addr, err := parseServer(s)
		errs = append(errs, err)
		addrs = append(addrs, addr)
	}
	if len(c.Servers) == 0 {
		// As in libc: without the file, the server is on this machine.
		text, _ := os.ReadFile(resolvConf)
		addrs = nameservers(text)
	}
	return addrs, errors.Join(errs...)
}

func parseServer(s string) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(addr, 53), nil
	}
	addr, err := netip.ParseAddrPort(s)
	if err != nil || addr.Port() == 0 {
		return addr, fmt.Errorf("server %q: must be ip:port, as in %q", s,
			net.JoinHostPort("192.0.2.53", "53"))
	}
	return addr, nil
}

// nameservers returns the nameservers of a resolv.conf(5) text; without any it is 127.0.0.1:53.
func nameservers(text []byte) []netip.AddrPort {
	var addrs []netip.AddrPort
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != "nameserver" || len(addrs) == maxServers {
			continue
		}
		if addr, err := netip.ParseAddr(string(fields[1])); err == nil {
			addrs = append(addrs, netip.AddrPortFrom(addr, 53))
		}
	}
	if len(addrs) == 0 {
		addrs = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53)}
	}
	return addrs
}
