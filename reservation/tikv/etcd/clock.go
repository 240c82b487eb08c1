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
	looks    = 8 // at a clock that stands, a tick apart, until nobody is known to keep it

	// lag is how far behind the fastest a clock may be: a tick, and the calls to keep the key and to read it. For so long,
	// at least, a group whose lease was lost is kept back: by the clock of whoever gave the lease it may not have ended.
	lag = 4 * tick
)

// clock is the one clock of all services on an etcd, which has none of its own: a key with the time in ms, which each
// service puts forward and sets its own clock by. A service's clock runs by its machine's monotonic one and never goes
// back. The fastest leads; the others are behind it by a tick and two calls at most, and being behind makes leases shorter
// and hosts wait, nothing worse. A machine's time of day counts only where nobody keeps the clock: who starts beside
// others joins their time, however far off its own is.
type clock struct {
	kv     kv.KV
	wall   func() int64  // ms, by this machine's time of day
	joined chan struct{} // closed when the time is known
	stop   func()        // and wait

	found  int64 // what the clock stood at when this service came
	looked int   // how often it stood so

	mu  sync.Mutex // guards all below
	ms  int64      // the time
	at  time.Time  // when it was ms
	err error      // what last went wrong
}

func wall() int64 { return time.Now().UnixMilli() }

// startClock returns a clock, to be stopped.
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

// Now is kv.Config's.
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

// run joins, and then keeps time, until ctx ends.
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

// join finds the time that is kept, or has this machine's be it where nobody keeps one.
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

// keep has the faster one of this clock and the kept one lead.
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
