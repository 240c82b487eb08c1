package engine

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"urlserver/configs"
	"urlserver/hostslots"
)

// Daemons that share a reservation also share the caps of shared networks. A cap is cut into equal
// slices, and each slice is leased from the reservation as a group is. With some slices of a cap a
// daemon has their parts of its open requests, and a gap as much longer as it lacks slices.
//
//   - A slice counts until nine tenths of its lease have passed, as the lease of a group does. The
//     daemon releases a slice when its open requests fit into the other slices.
//   - A new slice shortens the gap only when one such gap has passed. So between two requests the
//     slices held always earn one request, and all daemons together keep the pace of the cap.
//   - A daemon whose groups wait for the cap tries for all slices that it lacks, every
//     1/lookShare of a lease. So does one with more open requests than it has room for, as after a
//     reload that puts their hosts on the network. A daemon with open requests goes first: one that
//     has had no slice yet and has no open requests tries one look later.
//   - A daemon gives up each slice after turnTime, and does not try for it for 1/shunShare of a
//     lease. That is longer than 1/lookShare, so another daemon that wants the slice gets it first. A
//     daemon with more slices gives up more of them in a lease, and each daemon that wants slices is as
//     likely to get one as another. So all come to hold equally many, without counting each other.
//   - A daemon that needs fewer slices than it has releases one every 1/idleShare of a lease. One
//     that sends nothing to the network releases all.
//   - A store has a record of each slice until somebody deletes it. A daemon that dies deletes none,
//     so each daemon has unused slices deleted when it starts and then every forgetLeases.
const (
	maxSlices    = 32  // of a cap
	slicesPerSec = 4   // of a cap, for each request a second
	lookShare    = 30  // 1/lookShare of a lease passes between two looks at a cap's use
	shunShare    = 24  // a daemon does not try for a slice that it gave up for 1/shunShare of a lease
	idleShare    = 6   // a daemon keeps a slice that it does not need for 1/idleShare of a lease
	turnLeases   = 1.5 // leases after which a slice is given up
	turnGaps     = 24  // gaps of a slice after which it is given up at the soonest
	forgetLeases = 10  // leases after which slices that this daemon does not use are deleted again
	spare        = 0.8 // of the pace of the other slices: a slice is not needed while this suffices
)

// capSlots is the part of hostslots.Slots that netSlices needs.
type capSlots interface {
	SetCap(now time.Duration, network string, gap time.Duration, concurrent int)
	Cap(network string) hostslots.CapView
}

// netSlices decides which slices of the caps of shared networks this daemon tries for, keeps and
// releases, and what it may use of each cap.
type netSlices struct {
	lease    time.Duration // 0: there is no reservation, and the daemon has each cap for itself
	seed     uint64        // of random
	caps     []*sharedCap
	released []Release     // for the next batch
	asks     bool          // there may be slices to be extended or tried for
	leaving  int           // slices in sliceLeaving
	next     time.Duration // step has something to do by then at the latest
	forgetAt time.Duration // when the store is asked next to delete slices that are not in use
}

// sharedCap is the cap of one shared network.
type sharedCap struct {
	network string
	pace    configs.Pace
	count   int         // how many slices the cap is cut into
	slices  []*netSlice // more than count after the pace has become less

	paced  int           // slices whose pace is in force
	paceAt time.Duration // when the pace of all slices held is in force
	gap    time.Duration // the gap that SetCap set last
	room   int           // the open requests that SetCap set last; -1: it was not called yet

	next      time.Duration // when stepCap has something to do
	lookAt    time.Duration // the next look at the use
	lookedAt  time.Duration
	waited    bool          // groups waited at the last look
	begun     bool          // a slice was tried for
	calmSince time.Duration // no group has waited at a look since
	requests  uint64        // at calmSince
	open      int           // the most requests that were open at a look since
	turn      float64       // turns of slices held since one was given up; at turnAt the oldest is given up
	turnAt    float64
}

// netSlice is one slice of a cap.
type netSlice struct {
	of    *sharedCap
	k     int
	host  string // under which it is leased
	state sliceState
	token uint64
	since time.Duration // leased since; while it is free, it is not tried for before
	until time.Duration // it counts until then at the latest
	renew time.Duration // when the lease is to be extended
}

type sliceState uint8

const (
	sliceFree    sliceState = iota // with others, or with nobody
	sliceWanted                    // the reservation is to be asked for it
	sliceAsked                     // the reservation is asked for it
	sliceHeld                      // leased
	sliceLeaving                   // leased, but given up: it counts for nothing, and is released soon
)

func newNetSlices(lease time.Duration, seed uint64) netSlices {
	return netSlices{lease: lease, seed: seed}
}

// sliceCount returns how many slices a cap is cut into. It depends on the cap alone, so that all
// daemons agree. Slow caps have few slices, each of which earns a request within some seconds.
func sliceCount(p configs.Pace) int {
	return max(1, min(p.Concurrent, int(min(math.Ceil(p.PerSec*slicesPerSec), maxSlices))))
}

// room returns how many open requests a slice allows.
func (n *netSlice) room() int {
	if n.k >= n.of.count {
		return 0
	}
	open := n.of.pace.Concurrent
	return open*(n.k+1)/n.of.count - open*n.k/n.of.count
}

// A slice is leased under a name that no URL can have: RFC 6761, section 6.4, keeps "invalid" free.
// The name tells nothing of the pace, so daemons whose settings differ exclude each other, too.
const sliceName = "%d.%x.slice.invalid"

// set puts the caps of shared networks, by name, in force in place of those before.
func (s *netSlices) set(now time.Duration, slots capSlots, networks map[string]*configs.SharedNetwork) {
	for _, c := range s.caps {
		c.pace, c.count = configs.Pace{}, 0
	}
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		n := networks[name]
		if s.lease == 0 {
			slots.SetCap(now, name, gap(n.PerSec), n.Concurrent)
			continue
		}
		c := s.find(name)
		if c == nil {
			c = &sharedCap{
				network: name, lookAt: now, lookedAt: now, calmSince: now, turnAt: s.jitter(), room: -1,
			}
			s.caps = append(s.caps, c)
		}
		c.setPace(n.Pace)
	}
	for _, c := range s.caps {
		for _, n := range c.slices[c.count:] {
			s.giveUp(n)
		}
		c.next = now
	}
	s.next = now
}

func (c *sharedCap) setPace(pace configs.Pace) {
	c.pace, c.count = pace, sliceCount(pace)
	hash := sha256.Sum256([]byte(c.network))
	for k := len(c.slices); k < c.count; k++ {
		c.slices = append(c.slices, &netSlice{of: c, k: k, host: fmt.Sprintf(sliceName, k, hash[:8])})
	}
}

func (s *netSlices) find(network string) *sharedCap {
	for _, c := range s.caps {
		if c.network == network {
			return c
		}
	}
	return nil
}

// share returns how many slices of a network this daemon has, of how many.
func (s *netSlices) share(network string) (held, of int) {
	if c := s.find(network); c != nil {
		return c.held(), c.count
	}
	return 0, 0
}

// random returns random bits (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
func (s *netSlices) random() uint64 {
	s.seed += 0x9e3779b97f4a7c15
	z := s.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// jitter returns a random number from 0.75 to 1.25, so that daemons do not keep in step.
func (s *netSlices) jitter() float64 { return 0.75 + float64(s.random()%1024)/2048 }

// held returns how many slices count for the cap.
func (c *sharedCap) held() int { return c.in(sliceHeld) }

// in returns how many slices are in a state.
func (c *sharedCap) in(state sliceState) (n int) {
	for _, slice := range c.slices {
		if slice.state == state {
			n++
		}
	}
	return n
}

// gapOf returns the least time between two requests with some slices of the cap.
func (c *sharedCap) gapOf(slices int) time.Duration {
	return time.Duration(float64(c.count) / float64(slices) / c.pace.PerSec * float64(time.Second))
}

// step brings the slices up to date with the time and with the use of the caps. With idle the
// daemon sends nothing, whatever waits. Step must be called before requests are sent.
func (s *netSlices) step(now time.Duration, slots capSlots, idle bool, due *waiter) {
	if s.lease == 0 || len(s.caps) == 0 {
		return
	}
	if now >= s.next || s.leaving > 0 {
		s.next = now + s.lease
		for _, c := range s.caps {
			if now >= c.next {
				s.stepCap(now, slots, c, idle)
			}
			s.drain(now, slots, c)
			s.next = min(s.next, c.next)
		}
		s.caps = slices.DeleteFunc(s.caps, (*sharedCap).over)
	}
	due.after(s.next - now)
}

// over reports whether the network is in no rule any more, and no slice of its cap is leased.
func (c *sharedCap) over() bool { return c.count == 0 && c.in(sliceFree) == len(c.slices) }

func (s *netSlices) stepCap(now time.Duration, slots capSlots, c *sharedCap, idle bool) {
	s.asks = true
	for _, n := range c.slices {
		if n.leased() && now >= n.until {
			s.release(now, n)
		}
	}
	if now >= c.lookAt {
		s.look(now, slots.Cap(c.network), c, idle)
	}
	s.allow(now, slots, c)
	c.next = c.lookAt
	if c.paced < c.held() {
		c.next = min(c.next, c.paceAt)
	}
	for _, n := range c.slices {
		if n.leased() {
			c.next = min(c.next, n.until, n.renew)
		}
	}
}

// drain releases slices that were given up, as far as the open requests fit into the others.
func (s *netSlices) drain(now time.Duration, slots capSlots, c *sharedCap) {
	if s.leaving == 0 || c.in(sliceLeaving) == 0 {
		return
	}
	open, room := slots.Cap(c.network).Open, 0
	for _, n := range c.slices {
		if n.leased() {
			room += n.room()
		}
	}
	for _, n := range c.slices {
		if n.state == sliceLeaving && open <= room-n.room() {
			room -= n.room()
			s.release(now, n)
		}
	}
}

// look decides which slices to try for and to give up, by the use of the cap.
func (s *netSlices) look(now time.Duration, use hostslots.CapView, c *sharedCap, idle bool) {
	waits := use.Waiting > 0 && !idle || use.Open > max(0, c.room)
	held := c.held()
	if waits || held == 0 {
		c.calmSince, c.requests, c.open = now, use.Requests, use.Open
	}
	c.open = max(c.open, use.Open)
	tries := waits && (c.waited || held == 0 && (c.begun || use.Open > 0))
	for _, n := range c.slices[:c.count] {
		switch {
		case n.state == sliceFree && tries && now >= n.since:
			n.state, c.begun = sliceWanted, true
		case n.state == sliceWanted && !waits:
			n.state = sliceFree
		}
	}
	c.turn += float64(held) * float64(now-c.lookedAt) / float64(s.turnTime(c))
	switch {
	case now-c.calmSince >= s.lease/idleShare:
		s.shrink(now, c, use)
	case c.turn >= c.turnAt && c.in(sliceLeaving) == 0:
		c.turn, c.turnAt = 0, s.jitter()
		s.giveUp(c.oldest())
	}
	c.waited, c.lookedAt, c.lookAt = waits, now, now+s.lease/lookShare
}

// turnTime returns for how long a slice is kept.
func (s *netSlices) turnTime(c *sharedCap) time.Duration {
	return max(time.Duration(turnLeases*float64(s.lease)), turnGaps*c.gapOf(1))
}

// shrink gives up slices that were not needed since calmSince.
func (s *netSlices) shrink(now time.Duration, c *sharedCap, use hostslots.CapView) {
	oldest, held := c.oldest(), c.held()
	sent := use.Requests - c.requests
	enough := spare * c.pace.PerSec * (now - c.calmSince).Seconds() * float64(held-1) / float64(c.count)
	switch {
	case oldest == nil:
	case sent == 0 && c.open == 0:
		for _, n := range c.slices {
			s.giveUp(n)
		}
	case held > 1 && float64(sent) <= enough && c.open <= c.room-oldest.room():
		s.giveUp(oldest)
	}
	c.calmSince, c.requests, c.open = now, use.Requests, use.Open
}

func (c *sharedCap) oldest() (oldest *netSlice) {
	for _, n := range c.slices {
		if n.state == sliceHeld && (oldest == nil || n.since < oldest.since) {
			oldest = n
		}
	}
	return oldest
}

func (n *netSlice) leased() bool { return n.state == sliceHeld || n.state == sliceLeaving }

// giveUp ends the use of a slice; nil: of none.
func (s *netSlices) giveUp(n *netSlice) {
	switch {
	case n == nil:
	case n.state == sliceHeld:
		n.state = sliceLeaving
		s.leaving++
	case n.state == sliceWanted:
		n.state = sliceFree
	}
}

// release returns a slice to the reservation, with the next batch.
func (s *netSlices) release(now time.Duration, n *netSlice) {
	s.released = append(s.released, Release{Host: n.host, Token: n.token, Slice: true})
	s.lost(n)
	n.since = now + s.lease/shunShare
}

// lost ends the lease of a slice.
func (s *netSlices) lost(n *netSlice) {
	if n.state == sliceLeaving {
		s.leaving--
	}
	n.state = sliceFree
}

// allow sets in the slots what they may use of a cap. A smaller share is in force at once. A new
// slice counts for the pace when one gap of all slices held has passed.
func (s *netSlices) allow(now time.Duration, slots capSlots, c *sharedCap) {
	held := c.held()
	if c.paced = min(c.paced, held); now >= c.paceAt {
		c.paced = held
	}
	room, gap := 0, c.gap
	if c.paced > 0 {
		gap = c.gapOf(c.paced)
		for _, n := range c.slices {
			if n.state == sliceHeld {
				room += n.room()
			}
		}
	}
	if room != c.room || gap != c.gap {
		c.room, c.gap = room, gap
		slots.SetCap(now, c.network, gap, room)
	}
}

// gather puts releases, extensions and tries into a batch for the reservation.
func (s *netSlices) gather(now time.Duration, c *LeaseBatch, stopping bool) {
	c.Releases = append(c.Releases, s.released...)
	s.released = s.released[:0]
	if now >= s.forgetAt && len(s.caps) > 0 {
		s.forgetAt = now + forgetLeases*s.lease
		for _, of := range s.caps {
			for _, n := range of.slices {
				if n.state == sliceFree {
					c.Forgets = append(c.Forgets, n.host)
				}
			}
		}
	}
	if !s.asks {
		return
	}
	s.asks = false
	for _, of := range s.caps {
		first := int(s.random() % uint64(len(of.slices)))
		for i := range of.slices {
			n := of.slices[(first+i)%len(of.slices)]
			request := LeaseRequest{Host: n.host, Slice: true, slice: n}
			switch {
			case n.leased() && now >= n.renew && len(c.Extends) < leaseBatch:
				n.renew = now + s.lease // until the answer
				request.Token = n.token
				c.Extends = append(c.Extends, request)
			case n.state == sliceWanted && !stopping && len(c.Acquires) < leaseBatch:
				n.state = sliceAsked
				c.Acquires = append(c.Acquires, request)
			}
		}
	}
}

// answered takes the reservation's answer for a slice. The lease began at began at the earliest.
func (s *netSlices) answered(now, began, margin time.Duration, c *LeaseRequest) {
	n := c.slice
	s.next, n.of.next = now, now
	switch {
	case n.state == sliceAsked && c.Answer == Granted:
		n.state, n.token, n.since = sliceHeld, c.Token, now
		n.until, n.renew = began+s.lease-margin, began+s.lease/3
		if n.k >= n.of.count {
			s.giveUp(n)
			return
		}
		n.of.paceAt = now + n.of.gapOf(n.of.held())
	case n.state == sliceAsked:
		n.state = sliceFree
	case !n.leased() || n.token != c.Token: // it has lapsed meanwhile
	case c.Answer == Granted:
		n.until, n.renew = began+s.lease-margin, began+s.lease/3
	case c.Answer == Denied:
		s.lost(n)
		n.since = now
	default:
		n.renew = now + leaseRetry
	}
}

// releaseAll returns releases of all slices but those that open requests need.
func (s *netSlices) releaseAll(now time.Duration, slots capSlots) []Release {
	for _, c := range s.caps {
		for _, n := range c.slices {
			s.giveUp(n)
		}
		s.drain(now, slots, c)
	}
	return s.released
}
