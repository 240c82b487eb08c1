package etcd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"urlserver/reservation/kv"
)

const (
	clockKey = "t"
	tick     = 250 * time.Millisecond
	looks    = 8 // readings of a clock that stands still, a tick apart, before a service takes it over

	// lag is how far a clock may be behind the fastest one: a tick, and the calls that write and
	// read the key. A group is unavailable for at least that long after a lost lease, because by
	// the clock of the service that gave it the lease may not have ended.
	lag = 4 * tick
)

// clock is one clock for all services on an etcd, which has none of its own. It is a key with the
// time in ms. Each service advances it, and sets its own clock by it. A service's clock runs by its
// machine's monotonic clock and never goes back. The fastest service leads. The others are behind
// it by a tick and two calls at most, which only makes leases shorter and hosts wait longer. A
// machine's time of day counts only if no other service keeps the clock: a service that starts
// beside others takes their time, however far off its own is.
type clock struct {
	kv     kv.KV
	wall   func() int64  // ms, by this machine's time of day
	joined chan struct{} // closed when the time is known
	stop   func()        // ends run and waits for it

	found  int64 // the key's time when this service started
	looked int   // how often the key had that time

	mu  sync.Mutex // guards all below
	ms  int64      // the time
	at  time.Time  // when it was ms
	err error      // the last error
}

func wall() int64 { return time.Now().UnixMilli() }

// startClock returns a clock. The caller stops it.
func startClock(keys kv.KV, wall func() int64) *clock {
	ctx, cancel := context.WithCancel(context.Background())
	c := &clock{kv: keys, wall: wall, joined: make(chan struct{})}
	ended := make(chan struct{})
	c.stop = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		c.run(ctx)
	}()
	return c
}

// Now is for kv.Config.
func (c *clock) Now(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case <-c.joined:
		return c.now(), nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return 0, fmt.Errorf("the time is not known yet: %w", cmp.Or(c.err, ctx.Err()))
}

func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ms + time.Since(c.at).Milliseconds()
}

func (c *clock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms, c.at = ms, time.Now()
}

// run joins the common clock, and then keeps it, until ctx ends.
func (c *clock) run(ctx context.Context) {
	step, known := c.join, false
	for ticker := time.NewTicker(tick); ; {
		done, err := step(ctx)
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
		}
		if done && !known {
			step, known = c.keep, true
			close(c.joined)
		}
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
	}
}

// join finds the common time. If no service keeps it, it becomes this machine's time.
func (c *clock) join(ctx context.Context) (bool, error) {
	at, raw, err := c.read(ctx)
	if err != nil {
		return false, err
	}
	if c.looked == 0 {
		c.found = at
	}
	own := c.wall()
	switch c.looked++; {
	case at != c.found || at >= own:
		c.set(at)
		return true, nil
	case raw != nil && c.looked <= looks:
		return false, nil
	}
	c.set(own)
	return c.put(ctx, raw)
}

// keep advances the key if this clock is ahead of it, else sets this clock by the key.
func (c *clock) keep(ctx context.Context) (bool, error) {
	at, raw, err := c.read(ctx)
	if err != nil {
		return false, err
	}
	if at >= c.now() {
		c.set(at)
		return true, nil
	}
	return c.put(ctx, raw)
}

func (c *clock) put(ctx context.Context, was []byte) (bool, error) {
	return c.kv.CompareAndSwap(ctx, clockKey, was, strconv.AppendInt(nil, c.now(), 10))
}

func (c *clock) read(ctx context.Context) (ms int64, raw []byte, err error) {
	raw, err = c.kv.Get(ctx, clockKey)
	if err != nil || raw == nil {
		return 0, nil, err
	}
	if ms, err = strconv.ParseInt(string(raw), 10, 64); err != nil {
		return 0, nil, fmt.Errorf("the key %s is no time in ms: %w", clockKey, err)
	}
	return ms, raw, nil
}
