package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/reservation/reservationtest"
	"urlserver/reservation/tikv/etcd/etcdtest"
)

var prefixes atomic.Int64 // a prefix for each test, so that they can share a cluster

// bench is a store on a virtual clock, under a prefix of its own.
func bench(t *testing.T, many int, addrs []string) reservationtest.Bench {
	t.Helper()
	var clock atomic.Int64
	clock.Store(1_700_000_000_000)
	rows := newKeys(Config{Addrs: addrs, Prefix: fmt.Sprintf("t%d/", prefixes.Add(1)),
		Penalty: reservationtest.Penalty})
	s := open(rows, func(context.Context) (int64, error) { return clock.Load(), nil }, nil)
	t.Cleanup(s.Close)
	return reservationtest.Bench{
		Store: s, Many: many, Lazy: true,
		Now:     func() time.Time { return time.UnixMilli(clock.Load()) },
		Advance: func(d time.Duration) { clock.Add(d.Milliseconds()) },
		Lose: func(t *testing.T, host string) {
			list, err := rows.Scan(t.Context(), "q", "r", 10_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range list {
				if row.Key[16:] != host {
					continue
				}
				if _, err := rows.CompareAndSwap(t.Context(), row.Key, []byte{'.'}, nil); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

func TestStore(t *testing.T) {
	addrs := etcdtest.Start(t, 3).Addrs()
	reservationtest.Run(t, func(t *testing.T) reservationtest.Bench { return bench(t, 300, addrs) })
}

func BenchmarkReserveRelease(b *testing.B) {
	s, err := New(Config{Addrs: etcdtest.Start(b, 3).Addrs()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	reservationtest.Pairs(b, s)
}
