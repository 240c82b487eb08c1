package grpcclient

import (
	"testing"
	"testing/synctest"
	"time"
)

// The store's clock differs from ours. Times in the future are given by the store's clock, and are
// never too early.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		if got, want := c.in(time.Minute), time.Now().Add(time.Minute).UnixMilli(); got != want {
			t.Errorf("before anything was learnt: %d; want %d", got, want)
		}
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			store := func() time.Time { return time.Now().Add(ahead) }
			began := time.Now()
			time.Sleep(30 * time.Millisecond) // on the way to the store
			at := store()
			time.Sleep(time.Second) // on the way back
			c.learn(began, at)
			c.learn(began.Add(-time.Minute), at.Add(time.Hour)) // a late answer
			time.Sleep(time.Hour)
			late := time.UnixMilli(c.in(time.Minute)).Sub(store().Add(time.Minute))
			if late < 0 || late > 32*time.Millisecond {
				t.Errorf("%v ahead: a minute from now is said %v too late; want 0 to what the call took "+
					"there", ahead, late)
			}
		}
	})
}
