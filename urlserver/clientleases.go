package urlserver

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/urlserver/engine"
)

// clientLeases gets the leases of addresses and of slices of caps for URL Frontier clients, from
// the reservation that the engine uses. An index calls it while it holds its own locks, so
// clientLeases takes no other lock while it holds its mutex.
type clientLeases struct {
	reserver *Reserver
	start    time.Time
	wake     chan struct{}             // holds one when there may be something to do
	released func(of []engine.Release) // tells the engine
	moved    func(addrs []string)      // tells the engine

	mu     sync.Mutex // guards all below; held for memory work only
	leases *engine.ClientLeases
}

// newClientLeases returns leases beside those of a daemon's engine.
func newClientLeases(of *Reserver) *clientLeases {
	r := &Reserver{Store: of.Store, Lease: of.Lease, Holder: of.Holder + "/clients", Log: of.Log}
	return &clientLeases{reserver: r, start: time.Now(), wake: make(chan struct{}, 1),
		leases: engine.NewClientLeases(of.Lease, rand.Uint64())}
}

func (c *clientLeases) now() time.Duration { return time.Since(c.start) }

// lack is [engine.Options.ClientsLack].
func (c *clientLeases) lack(name string) (waits, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leases.Lacks(c.now(), name)
}

// length returns how long a lease is; 0 if there are none.
func (c *clientLeases) length() time.Duration {
	if c == nil {
		return 0
	}
	return c.reserver.Lease
}

// freed takes releases of the engine's leases.
func (c *clientLeases) freed(releases []engine.Release) {
	if c == nil || len(releases) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases.Freed(c.now(), releases) {
		c.more()
	}
}

func (c *clientLeases) configure(rules *configs.RuleSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases.SetNetworks(c.now(), rules.SharedNetworks())
	c.more()
}

// closeAll is called when clients no longer keep the pace of addresses.
func (c *clientLeases) closeAll() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases.CloseAll(c.now())
	c.more()
}

// more wakes run.
func (c *clientLeases) more() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run acquires, extends and releases leases until ctx ends, and then releases all.
func (c *clientLeases) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.wake:
		case <-timer.C:
		case <-ctx.Done():
			c.mu.Lock()
			releases := c.leases.ReleaseAll(c.now())
			c.mu.Unlock()
			c.reserver.surrender(context.WithoutCancel(ctx), releases)
			return
		}
		c.mu.Lock()
		moved := c.leases.Moved()
		work, wait := c.leases.Step(c.now())
		c.mu.Unlock()
		if len(moved) > 0 {
			c.moved(moved)
		}
		if work != nil {
			late, cancel := outlast(ctx, answerWait)
			c.reserver.do(late, work)
			cancel()
			if len(work.Releases) > 0 {
				c.released(slices.Clone(work.Releases))
			}
			c.mu.Lock()
			c.leases.Answered(c.now(), work)
			c.mu.Unlock()
			wait = 0
		}
		arm(timer, wait)
	}
}

// addressUse is the use of an address by clients.
type addressUse struct {
	*clientLeases
	name string
}

// networkUse is the use of a shared network by clients.
type networkUse addressUse

// ofAddress returns the use of an address; nil if c is.
func (c *clientLeases) ofAddress(addr netip.Addr) docindex.AddressUse {
	if c == nil {
		return nil
	}
	return addressUse{c, addr.String()}
}

// ofNetwork returns the use of a shared network; nil if c is.
func (c *clientLeases) ofNetwork(name string) docindex.AddressUse {
	if c == nil {
		return nil
	}
	return networkUse{c, name}
}

// Usable implements [docindex.AddressUse].
func (u addressUse) Usable(int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	usable := u.leases.Usable(u.now(), u.name)
	if !usable {
		u.more()
	}
	return usable
}

// Holds implements [docindex.AddressUse].
func (u addressUse) Holds() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.leases.Holds(u.now(), u.name)
}

// Share implements [docindex.AddressUse].
func (u addressUse) Share(of docindex.Pace) docindex.Pace { return of }

// Gave implements [docindex.AddressUse].
func (u addressUse) Gave() {}

// SetOpen implements [docindex.AddressUse].
func (u addressUse) SetOpen(queues int, next, gap int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	until := max(time.Until(time.UnixMilli(next)), time.Duration(gap)*time.Millisecond)
	if u.leases.SetOpen(now, u.name, queues > 0, now+until) {
		u.more()
	}
}

// Usable implements [docindex.AddressUse].
func (u networkUse) Usable(waiting int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	usable := u.leases.NetworkUsable(u.now(), u.name, waiting)
	if !usable {
		u.more()
	}
	return usable
}

// Holds implements [docindex.AddressUse].
func (u networkUse) Holds() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.leases.HoldsNetwork(u.now(), u.name)
}

// Share implements [docindex.AddressUse].
func (u networkUse) Share(docindex.Pace) docindex.Pace {
	u.mu.Lock()
	defer u.mu.Unlock()
	gap, open := u.leases.Share(u.name)
	return docindex.Pace{Gap: (gap + time.Millisecond - 1).Milliseconds(), Open: open}
}

// Gave implements [docindex.AddressUse].
func (u networkUse) Gave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.leases.Gave(u.name)
}

// SetOpen implements [docindex.AddressUse].
func (u networkUse) SetOpen(queues int, _, _ int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.leases.SetNetworkOpen(u.name, queues)
}
