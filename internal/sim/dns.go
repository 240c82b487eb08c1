package sim

import (
	"errors"
	"math"
	"net/netip"
	"time"
)

var (
	errNoAddress = errors.New("no such host")
	errBroken    = errors.New("it answered SERVFAIL")
	errSilent    = errors.New("no answer")
	errDown      = errors.New("no name server answers")
)

// What the name servers of a zone answer.
const (
	zoneFine   = iota
	zoneSlow   // a look-up takes seconds
	zoneShaky  // SERVFAIL now and then for a while
	zoneBroken // SERVFAIL
	zoneSilent // no answer
)

const (
	giveUp     = 5 * time.Minute
	shakyEvery = 20 * time.Minute
	shakyShare = 0.7              // how long a shaky zone fails, as a share of giveUp
	outageMost = 10 * time.Minute // longest outage of all name servers
	noAnswer   = 6 * time.Second  // until a look-up without an answer fails
	failedFor  = time.Second      // how long the resolver caches a failure
)

// isForNow and isDown are engine.Options.ForNow and Down.
func isForNow(err error) bool { return err == errBroken || err == errSilent || err == errDown }
func isDown(err error) bool   { return err == errDown }

// names is the cache of the simulated resolver, and the state of the name servers.
type names struct {
	known  []answer      // by host
	down   time.Duration // until then no name server answers
	sick   time.Duration // until then most look-ups end with SERVFAIL
	useful bool          // a name server has answered without failure
}

// startDNS plans the troubles of the name servers: none answers at the start, then most look-ups
// fail for a while, and later there are outages.
func (r *run) startDNS() {
	t := &r.sc.Trouble
	r.names.down, r.names.sick = t.NoDNS, t.NoDNS+t.NoDNS/8
	r.every(func() time.Duration { return t.Outages },
		func() { r.names.down = r.now + r.between(time.Second, outageMost) })
}

// failure returns why a look-up of a host fails now, or nil.
func (r *run) failure(h uint32) error {
	zone := r.world.hosts[h].zone
	switch healed := r.now >= r.sc.Heal; {
	case healed:
	case r.now < r.names.down:
		return errDown
	case r.now < r.names.sick && r.rng.IntN(5) > 0, zone == zoneBroken:
		return errBroken
	case zone == zoneSilent:
		return errSilent
	case zone == zoneShaky:
		phase := time.Duration(h) * time.Minute
		if broken := time.Duration(shakyShare * float64(giveUp)); (r.now+phase)%shakyEvery < broken {
			return errBroken
		}
	}
	return nil
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
		r.oracle.holds(string(host), math.MaxInt64, nil)
		return addr, nil, true
	}
	a := &r.names.known[r.world.byName[string(host)]]
	if a.until <= r.now {
		return netip.Addr{}, nil, false
	}
	r.oracle.resolved(string(host), a.addr, a.err)
	r.oracle.holds(string(host), a.until, a.err)
	return a.addr, a.err, true
}

// lookUp answers a look-up after a while.
func (r *run) lookUp(name string) {
	r.oracle.looksUp(name)
	wait := r.between(0, 100*time.Millisecond)
	if r.rng.IntN(20) == 0 {
		wait = r.between(time.Second, 8*time.Second)
	}
	h := r.world.byName[name]
	zone := r.world.hosts[h].zone
	switch {
	case zone == zoneSlow:
		wait = r.between(time.Second, 20*time.Second)
	case zone == zoneSilent, r.now < r.names.down:
		wait = noAnswer
	}
	r.after(wait, func() {
		a := answer{err: errNoAddress, until: r.now + r.sc.Config.Resolver.NegativeTTL}
		addr, ok := r.world.addressAt(h, r.now)
		if err := r.failure(h); err != nil {
			a = answer{err: err, until: r.now + failedFor}
			if !r.names.useful {
				a.err = errDown
			}
			if isDown(a.err) {
				a.until = r.now
			}
		} else if r.names.useful = true; r.world.hosts[h].wanders {
			a = answer{addr: address(uint32(r.rng.IntN(r.sc.Addresses))),
				until: r.now + r.between(0, r.sc.NameTTL)}
		} else if ok && !(r.world.hosts[h].flaky && r.chance(r.sc.Trouble.Flaky*10)) {
			a = answer{addr: addr, until: r.now + r.between(0, r.sc.NameTTL)}
		}
		r.names.known[h] = a
		r.oracle.resolved(name, a.addr, a.err)
		r.oracle.lookedUp(name)
		r.oracle.holds(name, a.until, a.err)
		r.oracle.relocate()
		r.engine.Resolved(name, a.addr, a.err)
	})
}
