package redis

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// TestAcknowledgedSurvives kills Redis time and again while it is written to: with appendfsync
// always nothing that was acknowledged is lost.
func TestAcknowledgedSurvives(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, nil)
	t.Cleanup(func() { s.Close() })
	reach(t, s)
	var tries atomic.Int64
	over, written := make(chan struct{}), make(chan int)
	put := make(map[int]bool)
	ended := make(map[string]bool)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-over:
				written <- n
				return
			default:
			}
			tries.Add(1)
			var p docindex.Puts
			if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/", n),
				DocID: fmt.Appendf(nil, "id%d", n)}); err != nil {
				t.Error(err)
			}
			if _, err := s.Put(t.Context(), &p); err == nil {
				put[n] = true
			}
			var b docindex.Batch
			if s.Candidates(t.Context(), 1, nil, &b) == nil && tryEnd(t, s, &b) == nil {
				for i := range b.Len() {
					ended[string(b.At(i).DocID)] = true
				}
			}
		}
	}()
	for range 3 {
		before := tries.Load()
		eventually(t, "more work", func() bool { return tries.Load() > before+50 })
		server.Kill()
		if !server.Restart() {
			t.Fatal("redis-server does not come back")
		}
		eventually(t, "the store", func() bool { _, err := s.Document(t.Context(), []byte("id0")); return err == nil })
	}
	close(over)
	n := <-written
	for i := range n {
		id := fmt.Sprintf("id%d", i)
		var doc docindex.Document
		var err error
		eventually(t, "an answer", func() bool { // by a connection to the one that runs now
			doc, err = s.Document(t.Context(), []byte(id))
			return err == nil || errors.Is(err, docindex.ErrUnknown)
		})
		switch {
		case errors.Is(err, docindex.ErrUnknown) && !put[i]:
		case err != nil:
			t.Errorf("%s, put %v: %v", id, put[i], err)
		case ended[id] && doc.State != docindex.Completed:
			t.Errorf("%s has ended, and is %v", id, doc.State)
		}
	}
	t.Logf("%d of %d puts and %d outcomes were acknowledged", len(put), n, len(ended))
	if len(put) < 100 || len(ended) < 10 {
		t.Error("that is too few to tell")
	}
	checkCounts(t, s)
}
