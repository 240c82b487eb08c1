package reservationtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/reservation"
)

// Pairs measures lease and release: one host at a time by one caller and by 16, and 100 hosts at
// once. The store is empty, and its clock runs.
func Pairs(b *testing.B, s reservation.Store) {
	const hosts = 1000
	calls := make([]reservation.Call, hosts)
	for i := range calls {
		calls[i] = reservation.Call{Verb: reservation.AddHost, Host: fmt.Sprintf("h%d.test", i)}
	}
	for _, a := range s.Do(b.Context(), calls) {
		if a.Err != nil {
			b.Fatal(a.Err)
		}
	}
	for _, tc := range []struct {
		name          string
		callers, each int
	}{
		{name: "alone", callers: 1, each: 1},
		{name: "16 callers", callers: 16, each: 1},
		{name: "100 at once", callers: 1, each: 100},
	} {
		b.Run(tc.name, func(b *testing.B) {
			var left, done atomic.Int64
			left.Store(int64(b.N))
			var callers sync.WaitGroup
			b.ResetTimer()
			for range tc.callers {
				callers.Go(func() {
					for left.Add(-1) >= 0 {
						done.Add(pairs(b, s, tc.each))
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(done.Load())/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}

// pairs leases and releases count hosts at once.
func pairs(b *testing.B, s reservation.Store, count int) (done int64) {
	got, err := s.ReserveNextHost(b.Context(), time.Minute, count, "me")
	if errors.Is(err, reservation.ErrNotNow) {
		return 0
	}
	if err != nil {
		b.Error(err)
	}
	calls := make([]reservation.Call, len(got))
	for i, r := range got {
		calls[i] = reservation.Call{Verb: reservation.ReleaseHost, Host: r.Host, Token: r.Token}
	}
	for _, a := range s.Do(b.Context(), calls) {
		if a.Err != nil {
			b.Error(a.Err)
		}
	}
	return int64(len(got))
}
