package memory

import (
	"sync/atomic"
	"testing"
	"time"

	"urlserver/reservation/reservationtest"
)

func TestStore(t *testing.T) {
	reservationtest.Run(t, func(*testing.T) reservationtest.Bench {
		var clock atomic.Int64
		clock.Store(1_700_000_000_000)
		now := func() time.Time { return time.UnixMilli(clock.Load()) }
		return reservationtest.Bench{
			Store:   New(Config{Penalty: reservationtest.Penalty, Now: now}),
			Now:     now,
			Advance: func(d time.Duration) { clock.Add(d.Milliseconds()) },
			Many:    100_000,
		}
	})
}
