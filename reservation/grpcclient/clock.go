package grpcclient

import (
	"sync"
	"time"

	"urlserver/reservation"
)

// clock estimates the time of the service's store, which messages use. It learns that time from the
// ends of leases, and continues with the monotonic clock of this process, so no wall clock matters.
// It is safe for concurrent use.
type clock struct {
	mu    sync.Mutex // guards all below
	local time.Time  // with its monotonic reading; zero: nothing is known yet
	store time.Time  // the store's time at local, or later than that
}

// learn stores that a call which began at local was executed at store by the store's clock. The
// call took time to arrive and the store rounds to ms, so the estimate is ahead of the store's
// clock. So nothing is released too soon.
func (c *clock) learn(local, store time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if local.After(c.local) {
		c.local, c.store = local, store.Add(time.Millisecond)
	}
}

// in returns the time so long from now, in ms since 1970 by the store's clock. Before anything is
// learnt it uses the wall clock of this machine.
func (c *clock) in(after time.Duration) (ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local.IsZero() {
		return reservation.Millis(time.Now().Add(after))
	}
	return reservation.Millis(c.store.Add(time.Since(c.local)).Add(after))
}
