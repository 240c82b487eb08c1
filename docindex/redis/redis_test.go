package redis

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"urlserver/docindex"
	"urlserver/docindex/indextest"
	"urlserver/internal/testkit/redistest"
)

const testLease = time.Minute

// open makes an empty store on a Redis; in a synctest bubble it is one with the bubble's time.
func (f *ferry) open(t *testing.T, addrs ...string) docindex.Store {
	t.Helper()
	if time.Now().Year() > 2000 {
		return openStore(t, nil, addrs...)
	}
	x := &ferried{f: f}
	f.outside(func(func(func())) { x.s = patientStore(Config{Addrs: addrs, Lease: testLease}, x.now.Load) })
	t.Cleanup(func() { f.outside(func(func(func())) { x.s.Close() }) })
	f.outside(func(func(func())) { flush(t, x.s) })
	return x
}

// patientStore waits for a Redis that a busy machine lets do nothing for seconds.
func patientStore(cfg Config, clock func() int64) *Store {
	s := newStore(cfg, clock)
	s.dial, s.wait = 5*time.Minute, 5*time.Minute
	return s
}

func openStore(t testing.TB, clock func() int64, addrs ...string) *Store {
	t.Helper()
	s := patientStore(Config{Addrs: addrs, Lease: testLease}, clock)
	t.Cleanup(func() { s.Close() })
	flush(t, s)
	return s
}

// flush empties Redis; the store begins anew. It does not use the context of t: what is first done
// outside of a bubble with that would make it one of outside.
func flush(t testing.TB, s *Store) {
	ctx := context.Background()
	for _, node := range reach(t, s).Nodes() {
		if err := node.Do(ctx, node.B().Flushall().Build()).Error(); err != nil && !isReadOnly(err) {
			t.Fatal(err)
		}
	}
}

// reach connects to Redis, which a busy machine may not do in time at once.
func reach(t testing.TB, s *Store) (c rueidis.Client) {
	eventually(t, "Redis", func() bool {
		client, err := s.connected(context.Background())
		c = client
		return err == nil
	})
	return c
}

func TestSuite(t *testing.T) {
	server := redistest.Start(t)
	f := newFerry()
	defer close(f.jobs)
	indextest.Run(t, func(t *testing.T) docindex.Store { return f.open(t, server.Addr()) })
}

func isReadOnly(err error) bool { return strings.HasPrefix(err.Error(), "READONLY") }
