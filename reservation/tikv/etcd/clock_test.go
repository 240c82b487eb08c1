package etcd

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/reservation/kv"
)

// key is an etcd of one key.
type key struct {
	mu    sync.Mutex // guards all below
	value []byte
	away  bool
	slow  *rand.Rand    // how long calls take; nil: no time
	most  time.Duration // for half a call; 0: 10 ms
	hangs time.Time     // until then calls do not return
	full  bool          // it takes no writes
}

func (k *key) refuse(full bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.full = full
}

// trouble makes calls fail, or hang for d.
func (k *key) trouble(d time.Duration, hangs bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = d > 0 && !hangs
	if hangs {
		k.hangs = time.Now().Add(d)
	}
}

// wait takes the time of half a call.
func (k *key) wait() {
	k.mu.Lock()
	d := time.Duration(0)
	if k.slow != nil {
		d = time.Duration(k.slow.Int64N(int64(cmp.Or(k.most, 10*time.Millisecond))))
	}
	d += max(0, time.Until(k.hangs))
	k.mu.Unlock()
	time.Sleep(d)
}

func (k *key) Get(context.Context, string) ([]byte, error) {
	k.wait()
	defer k.wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away {
		return nil, errors.New("no leader")
	}
	return k.value, nil
}

func (k *key) CompareAndSwap(_ context.Context, _ string, was, to []byte) (bool, error) {
	k.wait()
	defer k.wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full {
		return false, errors.New("no space")
	}
	if string(k.value) != string(was) {
		return false, nil
	}
	k.value = to
	return true, nil
}

func (k *key) Scan(context.Context, string, string, int) ([]kv.Pair, error) { return nil, nil }

func (k *key) set(value string, away bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.away = []byte(value), away
}

// off is a machine's time of day that is wrong.
func off(by time.Duration) func() int64 { return func() int64 { return wall() + by.Milliseconds() } }

// said is the time in ms.
func (c *clock) said(t *testing.T) int64 {
	t.Helper()
	now, err := c.Now(t.Context())
	if err != nil {
		t.Fatalf("Now: %v", err)
	}
	return now
}

func TestClockIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &key{}
		first := startClock(k, wall)
		defer first.stop()
		if got := first.said(t); got != wall() {
			t.Errorf("the first one says %d; want %d, its machine's time", got, wall())
		}
		time.Sleep(time.Minute)
		if got := first.said(t); got != wall() {
			t.Errorf("after a minute alone it says %d; want %d", got, wall())
		}
		for _, by := range []time.Duration{time.Hour, -time.Hour, 0, 100 * time.Millisecond} {
			other := startClock(k, off(by))
			defer other.stop()
			other.said(t)
			time.Sleep(2 * tick)
			got, want := other.said(t), first.said(t)
			if got < want-tick.Milliseconds() || got > want {
				t.Errorf("one whose machine is %v off says %d; want %d, as the first one", by, got, want)
			}
		}
	})
}

// TestClockLate compares the clocks of services that start at any time, over an etcd whose calls take up to
// 20 ms. Each is behind the others by late at most, and by 100 ms at most: a service is behind the one whose
// time it takes by a glance and the calls, 50 ms, and that one may be behind a third by as much.
func TestClockLate(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			k := &key{slow: rand.New(rand.NewPCG(seed, 1))}
			clocks := []*clock{startClock(k, wall)}
			defer func() {
				for _, c := range clocks {
					c.stop()
				}
			}()
			clocks[0].said(t)
			for range 2 {
				time.Sleep(5*time.Second + time.Duration(rnd.Int64N(int64(time.Second))))
				c := startClock(k, off(-time.Hour))
				clocks = append(clocks, c)
				c.said(t) // waits until it has joined
			}
			if got := clocks[0].late(); got != 0 {
				t.Errorf("the clock that began alone is late by %d ms; want 0", got)
			}
			for range 100 {
				checkLate(t, clocks)
				time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
			}
		})
	}
}

func checkLate(t *testing.T, clocks []*clock) {
	t.Helper()
	var said []int64
	for _, c := range clocks {
		said = append(said, c.said(t))
	}
	fastest := slices.Max(said)
	for i, c := range clocks {
		if is := fastest - said[i]; is > c.late() || is > 100 {
			t.Fatalf("clock %d is behind by %d ms, and late says %d; want 100 at most: twice a glance and the calls",
				i, is, c.late())
		}
	}
}

// TestClockAfterOutage: a service begins before or while etcd is away for some seconds, or does not answer.
// After that the service joins the clock that another one keeps, however far off its own machine's
// is, and is behind it by late at most.
func TestClockAfterOutage(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		for seed := range uint64(100) {
			synctest.Test(t, func(t *testing.T) { joinAfterOutage(t, seed, hangs) })
		}
	}
}

func joinAfterOutage(t *testing.T, seed uint64, hangs bool) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	k := &key{slow: rand.New(rand.NewPCG(seed, 1))}
	keeps := startClock(k, wall)
	defer keeps.stop()
	keeps.said(t)
	time.Sleep(5*time.Second + time.Duration(rnd.Int64N(int64(time.Second))))
	outage, late := time.Duration(rnd.Int64N(int64(4*time.Second))), time.Duration(0)
	if seed%2 == 0 { // the service begins during the outage
		k.trouble(outage, hangs)
		late = time.Duration(rnd.Int64N(int64(outage)))
		time.Sleep(late)
	}
	joins := startClock(k, off(time.Hour))
	defer joins.stop()
	if seed%2 != 0 {
		time.Sleep(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
		k.trouble(outage, hangs)
	}
	time.Sleep(outage - late)
	k.trouble(0, false)
	joins.said(t)
	for range 20 {
		got, want := joins.said(t), keeps.said(t)
		if want > wall()+1 || got > want || got < want-joins.late() {
			t.Fatalf("after an outage of %v a service that joins says %d, and is late by %d ms at most; the other one "+
				"says %d, and its machine %d", outage, got, joins.late(), want, wall())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestClockSlow: where the calls of etcd take long, late says so.
func TestClockSlow(t *testing.T) {
	for _, most := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond} {
		for seed := range uint64(50) {
			synctest.Test(t, func(t *testing.T) {
				k := &key{slow: rand.New(rand.NewPCG(seed, 1)), most: most / 2}
				keeps := startClock(k, wall)
				defer keeps.stop()
				keeps.said(t)
				time.Sleep(5*time.Second + time.Duration(seed)*time.Second/50)
				joins := startClock(k, wall)
				defer joins.stop()
				joins.said(t)
				if got := keeps.said(t) - joins.said(t); got > joins.late() {
					t.Fatalf("with calls of up to %v a service is behind by %d ms, and late says %d", most, got,
						joins.late())
				}
			})
		}
	}
}

// TestClockFull: an etcd that takes no writes for a while, as when it is full, lets no service take over a
// clock that another one keeps.
func TestClockFull(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			k := &key{slow: rand.New(rand.NewPCG(seed, 1))}
			keeps := startClock(k, wall)
			defer keeps.stop()
			keeps.said(t)
			time.Sleep(time.Second)
			k.refuse(true)
			joins := startClock(k, off(time.Hour))
			defer joins.stop()
			time.Sleep(3*time.Second + time.Duration(seed)*time.Second/100)
			k.refuse(false)
			joins.said(t)
			if got := keeps.said(t); got > wall()+1 {
				t.Fatalf("the common time is %d; want %d", got, wall())
			}
		})
	}
}

func TestClockStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		kept, want time.Duration // from the machine's time
	}{
		"nobody kept it for a day": {kept: -24 * time.Hour},
		"it never goes back":       {kept: time.Hour, want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &key{}
				k.set(strconv.FormatInt(off(tc.kept)(), 10), false)
				c := startClock(k, wall)
				defer c.stop()
				if got, want := c.said(t), off(tc.want)(); got != want {
					t.Errorf("it says %d; want %d", got, want)
				}
			})
		})
	}
}

// TestClockRunsOn: etcd that is away does not stop a clock that has joined.
func TestClockRunsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &key{}
		c := startClock(k, wall)
		defer c.stop()
		was := c.said(t)
		k.set(strconv.FormatInt(was, 10), true)
		time.Sleep(time.Minute)
		if got := c.said(t); got != was+60_000 {
			t.Errorf("it says %d after a minute; want %d", got, was+60_000)
		}
	})
}

func TestClockUnknown(t *testing.T) {
	for name, set := range map[string]func(*key){
		"no leader":        func(k *key) { k.set("", true) },
		"is no time in ms": func(k *key) { k.set("noon", false) },
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &key{}
			set(k)
			c := startClock(k, wall)
			defer c.stop()
			start := time.Now()
			_, err := c.Now(t.Context())
			if err == nil || !strings.Contains(err.Error(), name) || time.Since(start) != callTime {
				t.Errorf("Now = %v after %v; want an error that says %q, after %v", err, time.Since(start),
					name, callTime)
			}
		})
	}
}
