package etcd

import (
	"context"
	"errors"
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
}

func (k *key) Get(context.Context, string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away {
		return nil, errors.New("no leader")
	}
	return k.value, nil
}

func (k *key) CompareAndSwap(_ context.Context, _ string, was, to []byte) (bool, error) {
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
