package engine

import (
	"net/netip"
	"time"

	"urlserver/internal/container/dense"
	"urlserver/internal/container/timeheap"
)

// Claims is work for the reservation that daemons share, to be done in the order of its fields. One is out at a time;
// whoever does it fills the answers in.
type Claims struct {
	Held     []Held
	Releases []Release
	Binds    []Bind
	Extends  []Claim
	Tries    []Claim

	// Forgotten is an answer: what was told in Held is not counted, nor is what was told before.
	Forgotten bool

	began  time.Duration
	crawls int // in Held
}

// reset empties c for use at another time.
func (c *Claims) reset(now time.Duration) {
	clear(c.Held)
	clear(c.Releases)
	clear(c.Binds)
	clear(c.Extends)
	clear(c.Tries)
	*c = Claims{
		Held: c.Held[:0], Releases: c.Releases[:0], Binds: c.Binds[:0], Extends: c.Extends[:0], Tries: c.Tries[:0], began: now,
	}
}

// Release gives a group back that Next from now on may be asked again.
type Release struct {
	group  uint32
	Host   string // that the lease is for: the group's address or, where it has a name, one of its hosts
	Token  uint64
	Next   time.Duration
	Delete bool // the daemon holds nothing for it any more
}

// Bind proposes the group of a host: the address that the host has or, by a rule, an alias.
type Bind struct {
	host  uint32
	Host  string
	Addr  netip.Addr
	Alias string // by a rule; "": none
	TTL   time.Duration
	Ask   bool   // which group is in force: the binding is to be extended as little as may be, instead of by TTL
	Group string // the answer: the group in force; "": there is none
}

// Claim is a lease to be got, or extended.
type Claim struct {
	Host    string
	Token   uint64 // of the lease to be extended, or the answer
	Verdict Verdict
	Unknown bool // an answer: the reservation does not know of it
	group   uint32
}

// Verdict is what became of a Claim.
type Verdict uint8

const (
	Unanswered Verdict = iota // the reservation could not be asked
	Granted
	Denied
)

const (
	claimBatch  = 1000 // of each kind, in one Claims
	tellsALease = 6
	lingerShare = 6           // of a lease that is kept without need, at most: less than extending takes
	claimRetry  = time.Second // until the reservation is asked again that could not be
)

// claims is what the engine knows of its leases.
type claims struct {
	out       bool // asked is
	asked     Claims
	holds     holds
	renewals  timeheap.Heap // of groups in holds: when to extend the lease
	releases  []Release
	idle      []uint32             // a buffer
	bindings  dense.Array[binding] // by host
	toBind    []proposal
	questions timeheap.Heap // hosts, by when to ask whether their bindings have ended
	told      told
	tellers   map[string]uint32 // the group that told it last; groups come and go
	tellAt    time.Duration     // what has changed
	changed   []uint32          // groups, for the next time
	partly    []uint32          // groups of which not all crawls were told, for when what has changed is next
	notUntil  time.Duration     // nothing is asked before: the reservation is away
}

// holds are the leases that the engine has.
type holds struct {
	byGroup dense.Array[hold]
	len     int
}

type hold struct {
	host  string // "": there is none
	token uint64
}

func (h *holds) of(group uint32) (hold, bool) {
	found := h.byGroup.Get(group)
	return found, found.host != ""
}

func (h *holds) add(group uint32, lease hold) {
	at := h.byGroup.At(group)
	if at.host == "" {
		h.len++
	}
	*at = lease
}

// drop forgets a lease that there is.
func (h *holds) drop(group uint32) {
	*h.byGroup.At(group) = hold{}
	h.len--
}

func newClaims() claims {
	return claims{tellers: map[string]uint32{}}
}

// margin is how long before its end a lease counts as ended: for clocks, for answers that took long, and for lines on
// their way.
func (e *Engine) margin() time.Duration { return e.opt.Lease / 10 }

// claim asks the reservation for what the slots want, and gives back what they need no more.
func (e *Engine) claim(due *waiter) {
	if e.opt.Lease == 0 {
		return
	}
	e.gatherReleases()
	if e.claims.out {
		return
	}
	if e.claims.notUntil > e.now {
		due.after(e.claims.notUntil - e.now)
		return
	}
	c := &e.claims.asked
	c.reset(e.now)
	c.Releases, e.claims.releases = e.claims.releases, c.Releases
	e.gatherBinds(c, due)
	e.gatherExtends(c, due)
	for len(c.Tries) < claimBatch && !e.stopping {
		id := e.slots.NextWantedLease()
		if id == 0 {
			break
		}
		c.Tries = append(c.Tries, Claim{group: id, Host: e.leaseHost(id)})
	}
	e.gatherHeld(c, due)
	if len(c.Held)+len(c.Releases)+len(c.Binds)+len(c.Extends)+len(c.Tries) > 0 {
		e.claims.out, e.Out.Claims = true, c
	}
}

// leaseHost is what a group's lease is for.
func (e *Engine) leaseHost(group uint32) string {
	if e.slots.Group(group).Named() {
		return string(e.slots.Host(e.slots.Group(group).AnyHost()).Name())
	}
	return e.slots.Group(group).Name()
}

func (e *Engine) gatherReleases() {
	e.claims.idle = e.slots.ReleasedLeases(e.now, e.opt.Lease/lingerShare, e.claims.idle[:0])
	for _, id := range e.claims.idle {
		e.release(id)
	}
}

func (e *Engine) release(group uint32) {
	h, ok := e.claims.holds.of(group)
	if !ok {
		return
	}
	e.claims.holds.drop(group)
	e.claims.renewals.Remove(group)
	e.claims.releases = append(e.claims.releases, Release{
		group: group, Host: h.host, Token: h.token, Delete: e.slots.Group(group).Docs() == 0,
		Next: max(0, e.slots.Group(group).NextRequest()-e.now),
	})
}

func (e *Engine) gatherExtends(c *Claims, due *waiter) {
	for len(c.Extends) < claimBatch {
		id, at, ok := e.claims.renewals.Min()
		if !ok {
			return
		}
		if at > e.now {
			due.after(at - e.now)
			return
		}
		if !e.slots.Group(id).Leased() { // it has lapsed
			e.release(id)
			continue
		}
		e.claims.renewals.Remove(id)
		h, _ := e.claims.holds.of(id)
		c.Extends = append(c.Extends, Claim{group: id, Host: h.host, Token: h.token})
	}
}

// Claimed takes the answers to Out.Claims.
func (e *Engine) Claimed(c *Claims) {
	e.claims.out = false
	if c.Forgotten {
		e.tellAgain()
	}
	for i := range c.Binds {
		e.bound(&c.Binds[i], c.began)
	}
	for i := range c.Extends {
		e.extended(&c.Extends[i], c.began)
	}
	for i := range c.Tries {
		e.tried(&c.Tries[i], c.began)
	}
}

func (e *Engine) extended(c *Claim, began time.Duration) {
	if h, ok := e.claims.holds.of(c.group); !ok || h.token != c.Token {
		return // released meanwhile
	}
	switch c.Verdict {
	case Granted:
		e.granted(c, began)
	case Denied:
		e.claims.holds.drop(c.group)
		e.stats.ClaimsLost++
		e.slots.Group(c.group).LeaseDenied(e.now, e.opt.Lease)
	case Unanswered: // the slots let go of it by themselves at its end
		e.claims.notUntil = e.now + claimRetry
		e.claims.renewals.Set(c.group, e.claims.notUntil)
		e.stats.ClaimErrors++
	}
}

func (e *Engine) tried(c *Claim, began time.Duration) {
	switch c.Verdict {
	case Granted:
		e.stats.Claimed++
		e.claims.holds.add(c.group, hold{c.Host, c.Token})
		e.granted(c, began)
		return
	case Denied:
		e.stats.ClaimsDenied++
		if c.Unknown { // so that it is told again
			e.untell(c.group)
		}
	case Unanswered:
		e.claims.notUntil = e.now + claimRetry
		e.stats.ClaimErrors++
	}
	e.slots.Group(c.group).LeaseDenied(e.now, e.opt.Lease/2)
}

// granted notes a lease that began, at the earliest, when the reservation was asked.
func (e *Engine) granted(c *Claim, began time.Duration) {
	e.slots.Group(c.group).LeaseGranted(e.now, began+e.opt.Lease-e.margin())
	if !e.slots.Group(c.group).Leased() { // it is not needed any more, or has lapsed
		e.release(c.group)
		return
	}
	e.claims.renewals.Set(c.group, began+e.opt.Lease/3)
}

// Surrender gives all leases back, once the engine does nothing more.
func (e *Engine) Surrender() []Release {
	e.gatherReleases()
	for group := range e.claims.holds.byGroup.Cap() {
		e.release(group)
	}
	for i := range e.claims.releases {
		e.claims.releases[i].Delete = true // what is held stays with the doc index
	}
	return e.claims.releases
}
