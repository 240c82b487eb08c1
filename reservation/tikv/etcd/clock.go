package etcd

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"urlserver/reservation/kv"
)

const (
	clockKey = "t"
	tick     = 250 * time.Millisecond // mean time from one write of the key to the next
	glance   = 10 * time.Millisecond  // from one reading of the key to the next, while a service joins
	stands   = 8 * tick               // a service takes over a clock that has stood still for so long

	// A clock that follows another one counts as behind it by this much, or more; see late.
	behind = tick

	// A group is unavailable for at least lag after a lost lease.
	lag = 4 * tick
)

// clock is one clock for all services on an etcd, which has none of its own. It is a key with the
// time in ms. Each service advances it, and sets its own clock by it. A service's clock runs by its
// machine's monotonic clock and never goes back. A service that starts beside others takes the time that
// they write, however far off its own machine's is. The machine's time of day counts only if no other
// service keeps the clock.
//
// So a service may be behind the others. Moments that have to pass for all of them are set later by
// as much; see late.
type clock struct {
	kv     kv.KV
	wall   func() int64  // ms, by this machine's time of day
	joined chan struct{} // closed when the time is known
	stop   func()        // ends run and waits for it

	// For join.
	began  time.Time     // when the first reading began; zero: there was none
	seen   time.Time     // when the last reading began
	found  int64         // the key's time then
	since  time.Time     // when the key was first seen to have that time
	stood  time.Duration // for so long it has been seen to keep that time
	writes bool          // the key could be written meanwhile
	before time.Time     // when the last reading before that time began; zero: there was none

	mu   sync.Mutex    // guards all below
	ms   int64         // the time
	at   time.Time     // when it was ms
	lags time.Duration // see late
	err  error         // the last error
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

// late returns how far this clock may be behind another service's, in ms. The service that began
// alone has the time that others take from it, so it is not behind.
func (c *clock) late() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lags.Milliseconds()
}

func (c *clock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms, c.at = ms, time.Now()
}

// follow takes the time of another service, which this clock is then behind by lags at most.
func (c *clock) follow(ms int64, lags time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms, c.at, c.lags = ms, time.Now(), max(c.lags, lags, behind)
}

// run joins the common clock, and then keeps it, until ctx ends. Its pauses are random, so that it does not
// read the key always as long after another service has written it: then it would stay behind by that time.
func (c *clock) run(ctx context.Context) {
	step, known := c.join, false
	for {
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
		pause := glance
		if known || err != nil {
			pause = tick/2 + rand.N(tick)
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// join finds the common time: it waits until it has seen the key change twice. The service that wrote
// the second value had read the first one, so its time was not earlier than the last reading before that.
//
// If no service keeps the time, it becomes this machine's time, unless that would set it back. While etcd
// does not answer, or takes no writes, nobody can advance the key: that time does not count.
func (c *clock) join(ctx context.Context) (bool, error) {
	start := time.Now()
	at, raw, err := c.read(ctx)
	if err != nil {
		return false, err
	}
	lags := time.Since(c.before)
	switch {
	case c.began.IsZero():
		c.began, c.found, c.since = start, at, start
	case at == c.found:
		c.stood += min(start.Sub(c.seen), tick)
	case at > c.found && !c.before.IsZero() && (lags <= 2*tick || time.Since(c.began) > stands):
		c.follow(at, lags)
		return true, nil
	default:
		c.found, c.since, c.before = at, start, c.seen
		c.stood, c.writes = 0, false
	}
	c.seen = start
	ok := false
	switch {
	case raw == nil || c.writes && c.stood >= stands:
		c.set(max(c.wall(), at+time.Since(c.since).Milliseconds()))
		ok, err = c.put(ctx, raw)
	case !c.writes && c.stood >= stands/2:
		c.writes, err = c.kv.CompareAndSwap(ctx, clockKey, raw, raw)
	}
	if err != nil {
		c.stood, c.writes = 0, false
	}
	return ok, err
}

// keep advances the key if this clock is ahead of it, else sets this clock by the key. The time in the key
// may be two ticks old.
func (c *clock) keep(ctx context.Context) (bool, error) {
	at, raw, err := c.read(ctx)
	if err != nil {
		return false, err
	}
	ahead := at - c.now()
	if ahead <= 0 {
		return c.put(ctx, raw)
	}
	lags := time.Duration(0) // as before
	if ahead > behind.Milliseconds() {
		lags = 2 * tick
	}
	c.follow(at, lags)
	return true, nil
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
