package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

// BenchmarkReserveRelease has 16 callers reserve and release through one Redis, one host at a time,
// with few and with a million groups waiting.
func BenchmarkReserveRelease(b *testing.B) {
	server := redistest.Start(b)
	for _, groups := range []int{1000, 1_000_000} {
		s := New(Config{Addrs: []string{server.Addr()}, Prefix: fmt.Sprintf("b%d:", groups),
			Penalty: time.Second})
		defer s.Close()
		fill(b, s, groups)
		b.Run(fmt.Sprintf("%d groups, 16 callers", groups), func(b *testing.B) {
			var left atomic.Int64
			left.Store(int64(b.N))
			var callers sync.WaitGroup
			b.ResetTimer()
			for range 16 {
				callers.Go(func() {
					for left.Add(-1) >= 0 {
						pair(b, s)
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
		b.Run(fmt.Sprintf("%d groups, alone", groups), func(b *testing.B) {
			for b.Loop() {
				pair(b, s)
			}
		})
	}
	b.Run("round trip", func(b *testing.B) {
		s := New(Config{Addrs: []string{server.Addr()}})
		defer s.Close()
		for b.Loop() {
			do(b, s, []string{"GET"}, "x")
		}
	})
}

func pair(b *testing.B, s *Store) {
	got, err := s.ReserveNextHost(context.Background(), time.Minute, 1, "me")
	if err != nil {
		b.Error(err)
		return
	}
	if err := s.ReleaseHost(context.Background(), got[0].Host, got[0].Token, time.Time{}); err != nil {
		b.Error(err)
	}
}

// fill adds a thousand groups that are due, and others for later.
func fill(b *testing.B, s *Store, groups int) {
	b.Helper()
	var add sync.WaitGroup
	for part := range 64 {
		add.Go(func() {
			for i := part; i < groups; i += 64 {
				earliest := time.Time{}
				if i >= 1000 {
					earliest = time.Now().Add(time.Hour)
				}
				if err := s.AddDocuments(context.Background(), fmt.Sprintf("h%d.test", i), earliest, "",
					1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	add.Wait()
}
