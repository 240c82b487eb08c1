package login

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	maxAttempts = 5           // per address and window
	window      = time.Minute // begins with an address's first attempt
	maxAddrs    = 1000        // addresses that are remembered; all others share one entry
)

// attempts counts attempts to log in by address. The zero value is ready.
type attempts struct {
	mu sync.Mutex // guards all below; held for memory work only
	by map[string]*tries
}

type tries struct {
	began time.Time
	n     int
}

// take counts an attempt. If wait is above 0, the attempt is not allowed and not counted, and the
// address may try again after wait.
func (a *attempts) take(addr string, now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := a.keyLocked(addr, now)
	t := a.by[key]
	if t == nil || now.Sub(t.began) >= window {
		t = &tries{began: now}
		a.by[key] = t
	}
	if t.n == maxAttempts {
		return window - now.Sub(t.began)
	}
	t.n++
	return 0
}

// keyLocked returns the key of the entry that an address is counted in.
func (a *attempts) keyLocked(addr string, now time.Time) string {
	key := network(addr)
	if a.by == nil {
		a.by = map[string]*tries{}
	}
	if _, known := a.by[key]; known || len(a.by) < maxAddrs {
		return key
	}
	for k, t := range a.by {
		if now.Sub(t.began) >= window {
			delete(a.by, k)
		}
	}
	if len(a.by) < maxAddrs {
		return key
	}
	return ""
}

func (a *attempts) clear(addr string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, network(addr))
}

// network returns an IPv4 address as it is, and the /64 of an IPv6 address: a holder of IPv6
// addresses has at least a /64.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is6() {
		p, _ := ip.WithZone("").Prefix(64) // in range
		return p.String()
	}
	return ip.String()
}
