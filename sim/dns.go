package sim

import (
	"errors"
	"net/netip"
	"time"
)

var errNoAddress = errors.New("no such host")

// names is the resolver: what it has in memory.
type names struct {
	known []answer // by host
}

type answer struct {
	addr  netip.Addr
	err   error
	until time.Duration
}

// cached is engine.Options.Cached.
func (r *run) cached(host []byte) (netip.Addr, error, bool) {
	if addr, err := netip.ParseAddr(string(host)); err == nil {
		r.oracle.resolved(string(host), addr, nil)
		return addr, nil, true
	}
	a := &r.names.known[r.world.byName[string(host)]]
	if a.until <= r.now {
		return netip.Addr{}, nil, false
	}
	r.oracle.resolved(string(host), a.addr, a.err)
	return a.addr, a.err, true
}

// lookUp answers after a while.
func (r *run) lookUp(name string) {
	wait := r.between(0, 100*time.Millisecond)
	if r.rng.IntN(20) == 0 {
		wait = r.between(time.Second, 8*time.Second)
	}
	r.after(wait, func() {
		h := r.world.byName[name]
		a := answer{err: errNoAddress, until: r.now + r.sc.Config.Resolver.NegativeTTL}
		addr, ok := r.world.addressAt(h, r.now)
		if ok && !(r.world.hosts[h].flaky && r.chance(r.sc.Trouble.Flaky*10)) {
			a = answer{addr: addr, until: r.now + r.between(0, r.sc.NameTTL)}
		}
		r.names.known[h] = a
		r.oracle.resolved(name, a.addr, a.err)
		r.engine.Resolved(name, a.addr, a.err)
	})
}
