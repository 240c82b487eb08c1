package login

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	maxAttempts = 5           // of one address, within
	window      = time.Minute // from the first of them
	maxAddrs    = 1000        // remembered; beyond, all others are one
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

// take counts an attempt; wait is how long there may be none, and this one does not count.
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

// keyLocked is the entry that an address counts in.
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

// network is an IPv4 address, or the /64 that one holder of IPv6 addresses has at least.
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
