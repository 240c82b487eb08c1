package redis

import (
	"testing"
	"time"

	"urlserver/internal/testkit/redistest"
)

// TestLeaseLost keeps Redis away for longer than a lease. The daemon is told when Redis answers again,
// since others may have its documents by then.
func TestLeaseLost(t *testing.T) {
	server := redistest.Start(t)
	s := New(Config{Addrs: []string{server.Addr()}, Lease: time.Second, Janitor: time.Second})
	t.Cleanup(func() { s.Close() })
	lost := make(chan struct{}, 10)
	s.OnLeaseLost(func() { lost <- struct{}{} })
	reach(t, s)
	server.Kill()
	began := time.Now()
	eventually(t, "more than a lease", func() bool { return time.Since(began) > 3*time.Second/2 })
	if !server.Restart() {
		t.Fatal("redis-server does not come back")
	}
	<-lost
}
