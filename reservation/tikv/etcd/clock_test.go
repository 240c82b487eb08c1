package etcd

import (
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
	slow  *rand.Rand // how long calls take; nil: no time
}

// wait takes the time of half a call.
func (k *key) wait() {
	k.mu.Lock()
	d := time.Duration(0)
	if k.slow != nil {
		d = time.Duration(k.slow.Int64N(int64(10 * time.Millisecond)))
	}
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
// 20 ms. Each is behind the others by late at most, and by far less: it may have its time from a service
// that is itself behind by a glance and the calls, 50 ms.
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
