package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"urlserver/reservation"
)

// BenchmarkReserveRelease leases and releases the next host while that many groups wait.
func BenchmarkReserveRelease(b *testing.B) {
	for _, groups := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			ctx, s := context.Background(), New(Config{Penalty: 10 * time.Second})
			for i := range groups {
				earliest := time.Time{}
				if i >= 1000 {
					earliest = time.Now().Add(time.Hour + time.Duration(i)*time.Millisecond)
				}
				if _, err := s.AddHost(ctx, fmt.Sprintf("h%d.test", i), earliest); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				got, err := s.ReserveNextHost(ctx, time.Minute, 1, "me")
				if err != nil {
					b.Fatal(err)
				}
				if err := s.ReleaseHost(ctx, got[0].Host, got[0].Token, time.Time{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTurnover releases every group with a later time, so that each goes through the heap of a
// million groups.
func BenchmarkTurnover(b *testing.B) {
	const groups = 1_000_000
	var now int64 = 1_700_000_000_000
	ctx, s := context.Background(), New(Config{Now: func() time.Time { return time.UnixMilli(now) }})
	for i := range groups {
		if _, err := s.AddHost(ctx, fmt.Sprintf("h%d.test", i), time.UnixMilli(now+int64(i)/10)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	calls := make([]reservation.Call, 0, 10)
	for b.Loop() {
		got, err := s.ReserveNextHost(ctx, time.Minute, cap(calls), "me")
		if err != nil {
			b.Fatal(err)
		}
		calls = calls[:0]
		for _, one := range got {
			calls = append(calls, reservation.Call{Verb: reservation.ReleaseHost, Host: one.Host,
				Token: one.Token, Time: time.UnixMilli(now + groups/10)})
		}
		s.Do(ctx, calls)
		now++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cap(calls)), "ns/pair")
}
