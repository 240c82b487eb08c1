package urlserver

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/internal/resolver"
	"urlserver/urlserver/engine"
)

const (
	maxClientLookups = 1000                  // under way at once
	clientLookupWait = 20 * time.Millisecond // until the index asks again for a name that is being looked up
	firstNamePause   = 2 * time.Second       // until a name that failed is looked up again; doubles
	mostNamePause    = time.Minute
	maxFailingNames  = 1 << 20
	briefTTL         = time.Second // an answer counts for at least this long
	maxBrief         = 10_000

	noAddress = "no address: " // begins HostAddress.Network of a host without a usable address; the host follows
)

// clientAddresses finds the addresses of the hosts of queues for URL Frontier clients
// (frontier.addresses). The index calls it while it holds its lock. So it answers from the
// resolver's cache, or begins a look-up without waiting. It is safe for concurrent use.
type clientAddresses struct {
	leases  *clientLeases // nil: nobody else uses the addresses
	start   time.Time
	resolve func(host string, deliver func(netip.Addr, error))
	cached  func(host []byte) (addr netip.Addr, err error, ok bool)

	mu      sync.Mutex // guards all below; not held while resolve is called
	cfg     configs.Config
	rules   *configs.RuleSet
	former  configs.FormerRules
	lookups map[string]struct{}
	failing map[string]failingName
	brief   map[string]briefAnswer // whose TTL is so short that the resolver does not keep them
}

type briefAnswer struct {
	addr netip.Addr
	end  time.Time
}

// failingName is a name that failed for now.
type failingName struct {
	since   time.Time // the first failure
	next    time.Time // when it is looked up again
	pause   time.Duration
	givenUp bool // it counts as a name without an address until next
}

func newClientAddresses(r *resolver.Resolver, leases *clientLeases) *clientAddresses {
	return &clientAddresses{leases: leases, start: time.Now(), resolve: r.Resolve, cached: r.Cached,
		lookups: map[string]struct{}{}, failing: map[string]failingName{}, brief: map[string]briefAnswer{}}
}

func (c *clientAddresses) configure(cfg *configs.Config) {
	rules := cfg.RuleSet()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Since(c.start); c.rules != nil && !cfg.SameRules(c.cfg) {
		c.former.Add(c.cfg, c.rules, now, now+engine.UnsharedFor(cfg, c.leases.length()))
	}
	if c.leases != nil {
		c.leases.configure(rules)
	}
	c.cfg, c.rules = *cfg, rules
}

// of is a [docindex.Addresses].
func (c *clientAddresses) of(host []byte) docindex.HostAddress {
	addr, err, ok := c.cached(host)
	if ok && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.atLocked(host, addr)
	}
	a, begin := c.unknown(host, err, time.Now())
	if begin {
		name := string(host)
		c.resolve(name, func(addr netip.Addr, err error) { c.resolved(name, addr, err, time.Now()) })
	}
	return a
}

// withoutAddressLocked returns the HostAddress of a host that has no address, or none that may be
// used: it has the pace of its site alone. The client decides what becomes of the host's URLs.
func (c *clientAddresses) withoutAddressLocked(host []byte) docindex.HostAddress {
	a := c.atLocked(host, netip.Addr{})
	a.Network, a.AddressPace, a.Use = noAddress+string(host), a.SitePace, nil
	return a
}

// atLocked returns the HostAddress of a host that is at an address.
func (c *clientAddresses) atLocked(host []byte, addr netip.Addr) docindex.HostAddress {
	l := c.rules.Limits(host, addr)
	site, address := c.cfg.SitePace(), c.cfg.AddressPace()
	a := docindex.HostAddress{Addr: addr, Site: l.Group, Blocked: l.Block,
		SitePace: paceOf(cmp.Or(l.Site.PerSec, site.PerSec), cmp.Or(l.Site.Concurrent, site.Concurrent)),
		Raises:   l.Raises && l.Address == configs.Pace{},
	}
	a.Use = c.leases.ofAddress(addr)
	if l.Shared != nil {
		a.Network, l.Address = l.Shared.Name, l.Shared.Pace
		a.Use = c.leases.ofNetwork(l.Shared.Name)
	} else if until := c.former.SharedUntil(host, addr, time.Since(c.start)); until > 0 {
		a.NotBefore = c.start.Add(until).UnixMilli() + 1
	}
	a.AddressPace = paceOf(cmp.Or(l.Address.PerSec, address.PerSec),
		cmp.Or(l.Address.Concurrent, address.Concurrent))
	return a
}

func paceOf(perSec float64, open int) docindex.Pace {
	return docindex.Pace{Gap: gapMS(perSec), Open: open}
}

// gapMS returns the gap in ms between so many requests a second, rounded up.
func gapMS(perSec float64) int64 { return int64(math.Ceil(1000 / perSec)) }

// unknown returns the state of a host whose address is not cached, and whether its look-up is to
// begin. err is a failure that is cached.
func (c *clientAddresses) unknown(host []byte, err error, now time.Time) (a docindex.HostAddress, begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, under := c.lookups[string(host)]
	f, failing := c.failing[string(host)]
	brief, answered := c.brief[string(host)]
	switch {
	case answered && now.Before(brief.end):
		return c.atLocked(host, brief.addr), false
	case under:
		return awaited(clientLookupWait), false
	case failing && now.Before(f.next) && f.givenUp, err != nil && !errors.Is(err, resolver.ErrServers):
		return c.withoutAddressLocked(host), false
	case failing && now.Before(f.next):
		return awaited(f.next.Sub(now)), false
	case len(c.lookups) >= maxClientLookups:
		return docindex.HostAddress{State: docindex.AddressBusy}, false
	}
	c.lookups[string(host)] = struct{}{}
	return awaited(clientLookupWait), true
}

func awaited(d time.Duration) docindex.HostAddress {
	return docindex.HostAddress{State: docindex.AddressAwaited, Retry: d.Milliseconds() + 1}
}

// resolved takes the end of a look-up. A name that fails for now is looked up again after growing
// pauses. After resolver.give_up it counts as a name without an address, unless no name server can
// be used: then nobody knows whether it has one.
func (c *clientAddresses) resolved(host string, addr netip.Addr, err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lookups, host)
	delete(c.brief, host)
	if _, _, kept := c.cached([]byte(host)); err == nil && !kept {
		c.keepBrieflyLocked(host, briefAnswer{addr, now.Add(briefTTL)}, now)
	}
	down := errors.Is(err, resolver.ErrDown) || errors.Is(err, resolver.ErrClosed)
	if !down && !errors.Is(err, resolver.ErrServers) {
		delete(c.failing, host)
		return
	}
	f, failing := c.failing[host]
	if !failing && len(c.failing) >= maxFailingNames {
		return
	}
	if !failing || down || f.givenUp {
		f.since, f.givenUp = now, false
	}
	f.pause = min(max(firstNamePause, 2*f.pause), mostNamePause)
	if giveUp := c.cfg.Resolver.GiveUp; !down && now.Sub(f.since) >= giveUp {
		f.givenUp, f.pause = true, giveUp
	}
	f.next = now.Add(f.pause)
	c.failing[host] = f
}

// keepBrieflyLocked keeps an answer, and forgets those that have ended if there are many.
func (c *clientAddresses) keepBrieflyLocked(host string, a briefAnswer, now time.Time) {
	if len(c.brief) >= maxBrief {
		maps.DeleteFunc(c.brief, func(_ string, a briefAnswer) bool { return !now.Before(a.end) })
	}
	if len(c.brief) < maxBrief {
		c.brief[host] = a
	}
}
