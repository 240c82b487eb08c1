package grpcclient

import (
	"sync"
	"time"

	"urlserver/reservation"
)

// clock tells the time of the services' store, which messages name moments by. It learns it from the ends of
// leases, and counts on by the monotonic clock of this process, so that nobody's wall clock matters. Safe for
// concurrent use.
type clock struct {
	mu    sync.Mutex // guards all below
	local time.Time  // with its monotonic reading; zero: nothing was learnt
	store time.Time  // the store's clock was here at local, or was not there yet
}

// learn notes that a call which began at local was done when the store's clock stood at store. As the call
// had still to get there, and the store tells whole ms, the clock is taken to be ahead by that: what is
// released is never allowed too soon.
func (c *clock) learn(local, store time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if local.After(c.local) {
		c.local, c.store = local, store.Add(time.Millisecond)
	}
}

// in is the moment so long from now, in ms since 1970 by the store's clock; by this machine's wall clock
// where nothing was learnt.
func (c *clock) in(after time.Duration) (ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local.IsZero() {
		return reservation.Millis(time.Now().Add(after))
	}
	return reservation.Millis(c.store.Add(time.Since(c.local)).Add(after))
}
