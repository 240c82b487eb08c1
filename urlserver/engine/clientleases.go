package engine

import (
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
	"urlserver/internal/container/timeheap"
)

// ClientLeases decides which leases the daemon tries for, keeps and releases for URL Frontier
// clients: of addresses, and of slices of the caps of shared networks. To the reservation it is a
// daemon of its own beside the engine. So spiders and clients of one daemon, and those of several,
// never have an address at once. ClientLeases is not safe for concurrent use.
type ClientLeases struct {
	lease   time.Duration
	groups  map[string]*clientLease
	byID    []*clientLease // by number in times; nil: the number is free
	free    []uint32
	times   timeheap.Heap // leases, by when there is something to do about them
	caps    map[string]*clientCap
	slices  netSlices
	request LeaseBatch
	out     bool
	retryAt time.Duration // the reservation is not asked before: it did not answer
	moved   []string      // see Moved
}

// clientLease is the lease of an address, or the wish to have it.
type clientLease struct {
	id      uint32
	name    string
	state   clientLeaseState
	denials int
	token   uint64
	turn    time.Duration // endTurn then releases the lease for others
	until   time.Duration // the lease counts until then
	renew   time.Duration // the lease is extended then
	usedAt  time.Duration // a client was last given, or refused, something at the address
	open    bool          // clients have URLs of the address
	next    time.Duration // no request before
}

const (
	clientLinger = time.Second      // how long an unneeded lease is kept, as more URLs may be due soon
	clientWish   = 10 * time.Second // how long after clientLease.usedAt clients want the lease
	clientRetry  = 16               // one that is denied is tried for again after 1/clientRetry of a lease
	clientRest   = 8                // after turnLeases it is left to others for 1/clientRest of a lease
)

type clientLeaseState uint8

const (
	clientDenied clientLeaseState = iota // or the lease has ended, or endTurn has released it
	clientWanted
	clientAsked
	clientHeld
)

// clientCap is what clients may use of a shared network, and what they use.
type clientCap struct {
	gap      time.Duration // that they may use
	room     int           // open requests that they may have
	open     int           // queues of which they have URLs
	waiting  int           // queues that wait for the network
	waitedAt time.Duration // when waiting was set
	requests uint64
}

// NewClientLeases returns the leases of a daemon that has none.
func NewClientLeases(lease time.Duration, seed uint64) *ClientLeases {
	return &ClientLeases{lease: lease, groups: map[string]*clientLease{}, caps: map[string]*clientCap{},
		slices: newNetSlices(lease, seed)}
}

// SetNetworks puts the caps of shared networks in force, by name.
func (l *ClientLeases) SetNetworks(now time.Duration, networks map[string]*configs.SharedNetwork) {
	l.slices.set(now, l, networks)
}

// SetCap sets the gap and the open requests that clients may use of a network; netSlices calls it.
func (l *ClientLeases) SetCap(_ time.Duration, network string, gap time.Duration, concurrent int) {
	c := l.cap(network)
	c.gap, c.room = gap, concurrent
}

// Cap returns how clients use a network.
func (l *ClientLeases) Cap(network string) hostslots.CapView {
	c := l.cap(network)
	return hostslots.CapView{Open: c.open, Waiting: c.waiting, Requests: c.requests}
}

func (l *ClientLeases) cap(network string) *clientCap {
	c := l.caps[network]
	if c == nil {
		c = &clientCap{}
		l.caps[network] = c
	}
	return c
}

// NetworkUsable reports whether clients may be given URLs on a shared network now. waiting is how
// many queues wait for that.
func (l *ClientLeases) NetworkUsable(now time.Duration, network string, waiting int) bool {
	l.slices.step(now, l, false, &waiter{}) // Step waits while the reservation does not answer
	c := l.cap(network)
	if c.waiting, c.waitedAt = waiting, now; c.room == 0 {
		c.waiting = max(1, waiting)
	}
	return c.room > 0
}

// HoldsNetwork reports whether clients have slices of a network. It asks for none.
func (l *ClientLeases) HoldsNetwork(now time.Duration, network string) bool {
	l.slices.step(now, l, false, &waiter{})
	c := l.caps[network]
	return c != nil && c.room > 0
}

// Share returns the gap and the open requests that clients may use of a network.
func (l *ClientLeases) Share(network string) (gap time.Duration, open int) {
	c := l.cap(network)
	return c.gap, c.room
}

// Gave counts a URL on a shared network that a client was given.
func (l *ClientLeases) Gave(network string) { l.cap(network).requests++ }

// SetNetworkOpen sets how many queues on a shared network clients have URLs of.
func (l *ClientLeases) SetNetworkOpen(network string, open int) { l.cap(network).open = open }

// Usable reports whether clients may be given URLs at an address now. If not, its lease is wanted.
func (l *ClientLeases) Usable(now time.Duration, name string) bool {
	c := l.groups[name]
	if c == nil {
		c = l.want(now, name)
	}
	c.usedAt = now
	return c.state == clientHeld && now < min(c.until, c.turn)
}

// Holds reports whether clients have the lease of an address. It asks for nothing. After its turn a
// lease holds still, though nothing new may be given out: URLs that were chosen before may leave.
func (l *ClientLeases) Holds(now time.Duration, name string) bool {
	c := l.groups[name]
	return c != nil && c.state == clientHeld && now < c.until
}

// Lacks reports whether clients want the lease of an address and lack it, and whether they have
// URLs there all the same: the lease has ended, or was not needed when they were given out.
func (l *ClientLeases) Lacks(now time.Duration, name string) (waits, open bool) {
	c := l.groups[name]
	if c == nil || c.state == clientHeld {
		return false, false
	}
	return c.open || now < c.usedAt+clientWish, c.open
}

// SetOpen says that clients have URLs at an address, or have none any more: then nobody may ask it
// before next. It reports whether Step has something new to do.
func (l *ClientLeases) SetOpen(now time.Duration, name string, open bool, next time.Duration) (more bool) {
	c := l.groups[name]
	if c == nil {
		if !open {
			return false
		}
		c, more = l.want(now, name), true
	}
	if open && !c.open && c.state != clientHeld {
		l.moved, more = append(l.moved, name), true
	}
	c.open, c.next, c.usedAt = open, max(c.next, next), now
	return more
}

// Moved returns the addresses whose leases clients do not have and to which, since the last call, a
// host has moved of which clients have URLs.
func (l *ClientLeases) Moved() (names []string) {
	names, l.moved = l.moved, nil
	return names
}

// Freed takes the leases that the engine has released. If clients want one of them, Step tries for
// it as soon as it is free. If the release has a rest, Step tries for it no sooner than other
// daemons do. wanted: Step has something new to do.
func (l *ClientLeases) Freed(now time.Duration, releases []Release) (wanted bool) {
	for i := range releases {
		if c := l.groups[releases[i].Host]; c != nil && c.state == clientDenied && releases[i].Rest == 0 {
			c.denials, wanted = 0, true
			l.times.Set(c.id, min(l.times.Due(c.id), now+releases[i].Next))
		}
	}
	return wanted
}

// CloseAll says that clients have no URLs anywhere, or that what they have does not count any more.
func (l *ClientLeases) CloseAll(now time.Duration) {
	for _, c := range l.groups {
		c.open = false
		if c.state == clientHeld {
			l.schedule(now, c)
		}
	}
	for _, c := range l.caps {
		c.open, c.waiting = 0, 0
	}
}

func (l *ClientLeases) want(now time.Duration, name string) *clientLease {
	c := &clientLease{name: name, state: clientWanted}
	if n := len(l.free); n > 0 {
		c.id, l.free = l.free[n-1], l.free[:n-1]
		l.byID[c.id] = c
	} else {
		c.id = uint32(len(l.byID))
		l.byID = append(l.byID, c)
	}
	l.groups[name] = c
	l.times.Set(c.id, now)
	return c
}

func (l *ClientLeases) forget(c *clientLease) {
	l.times.Remove(c.id)
	delete(l.groups, c.name)
	l.byID[c.id] = nil
	l.free = append(l.free, c.id)
}

// Step returns work for the reservation, or nil, and how long until Step is due again; a negative
// wait is endless. The answers go to Answered.
func (l *ClientLeases) Step(now time.Duration) (work *LeaseBatch, wait time.Duration) {
	due := waiter{}
	for _, c := range l.caps {
		if now-c.waitedAt > l.lease/idleShare {
			c.waiting = 0
		}
	}
	l.slices.step(now, l, false, &due)
	if l.out {
		return nil, due.wait()
	}
	if l.retryAt > now {
		return nil, l.retryAt - now
	}
	c := &l.request
	c.reset(now)
	l.slices.gather(now, c, false)
	for len(c.Extends) < leaseBatch && len(c.Acquires) < leaseBatch {
		id, at, ok := l.times.Min()
		if !ok {
			break
		}
		if at > now {
			due.after(at - now)
			break
		}
		l.stepLease(now, l.byID[id], c)
	}
	if len(c.Releases)+len(c.Extends)+len(c.Acquires)+len(c.Forgets) == 0 {
		return nil, due.wait()
	}
	l.out = true
	return c, due.wait()
}

// stepLease adds the requests that are due for a lease to work, and forgets a lease without use.
func (l *ClientLeases) stepLease(now time.Duration, c *clientLease, work *LeaseBatch) {
	// While the gap of the address lasts, nobody else could use the lease.
	idle := !c.open && now >= max(c.usedAt, c.next)+clientLinger
	request := LeaseRequest{Host: c.name, Token: c.token, Slice: true}
	switch {
	case c.state == clientHeld && now >= c.until:
		c.state, c.token = clientDenied, 0
		l.times.Set(c.id, now)
	case c.state == clientHeld && idle:
		work.Releases = append(work.Releases, c.release(now))
		l.forget(c)
	case c.state == clientHeld && !c.open && now >= c.turn:
		l.endTurn(now, c, work)
	case c.state == clientHeld && now >= c.renew:
		c.renew = now + l.lease // until the answer
		work.Extends = append(work.Extends, request)
		l.times.Set(c.id, c.until)
	case c.state == clientHeld:
		l.schedule(now, c)
	case idle && c.state == clientDenied:
		l.forget(c)
	default:
		c.state = clientAsked
		work.Acquires = append(work.Acquires, request)
		l.times.Remove(c.id)
	}
}

// endTurn releases a lease for others that want it. In one half of the cases, at random, this daemon
// may have it at once; in the other half, other daemons go first for a rest.
func (l *ClientLeases) endTurn(now time.Duration, c *clientLease, work *LeaseBatch) {
	rest, r := l.lease/clientRest, c.release(now)
	if l.slices.random()%2 == 0 {
		r.Rest, rest = rest, r.Next+2*rest
	}
	work.Releases = append(work.Releases, r)
	c.state, c.token = clientDenied, 0
	l.times.Set(c.id, now+rest)
}

func (c *clientLease) release(now time.Duration) Release {
	return Release{Host: c.name, Token: c.token, Slice: true, Next: max(0, c.next-now)}
}

// schedule sets when a lease that is held is looked at again.
func (l *ClientLeases) schedule(now time.Duration, c *clientLease) {
	at := min(c.renew, c.until)
	if !c.open {
		at = min(at, c.turn, max(c.usedAt, c.next)+clientLinger)
	}
	l.times.Set(c.id, max(at, now+time.Millisecond))
}

// Answered takes the answers to what Step returned.
func (l *ClientLeases) Answered(now time.Duration, work *LeaseBatch) {
	l.out = false
	margin := l.lease / 10
	for _, requests := range [...][]LeaseRequest{work.Extends, work.Acquires} {
		for i := range requests {
			r := &requests[i]
			if r.Answer == Unanswered {
				l.retryAt = now + leaseRetry
			}
			if r.slice != nil {
				l.slices.answered(now, work.began, margin, r)
			} else { // one that is asked for is not forgotten
				l.answered(now, work.began, margin, l.groups[r.Host], r)
			}
		}
	}
}

func (l *ClientLeases) answered(now, began, margin time.Duration, c *clientLease, r *LeaseRequest) {
	switch {
	case r.Answer == Granted:
		if c.state == clientAsked {
			c.usedAt, c.turn = now, now+time.Duration(turnLeases*float64(l.lease))
		}
		c.state, c.token, c.denials = clientHeld, r.Token, 0
		c.until, c.renew = began+l.lease-margin, began+l.lease/3
		l.schedule(now, c)
	case c.state == clientHeld && r.Answer == Unanswered:
		c.renew = now + leaseRetry
		l.schedule(now, c)
	default:
		c.state, c.token = clientDenied, 0
		pause := min(l.lease/clientRetry, leaseRetry/2<<min(c.denials, 10))
		l.times.Set(c.id, now+time.Duration(float64(pause)*l.slices.jitter()))
		c.denials++
	}
}

// ReleaseAll returns releases of all leases of which clients have no URLs. The leases of the others
// end by themselves, as clients may ask their addresses for some time.
func (l *ClientLeases) ReleaseAll(now time.Duration) (all []Release) {
	for _, c := range l.groups {
		if c.state == clientHeld && !c.open {
			r := c.release(now)
			r.Delete = true
			all = append(all, r)
		}
	}
	return append(all, l.slices.releaseAll(now, l)...)
}
