package redis

import (
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"urlserver/docindex"
	"urlserver/internal/testkit/redistest"
)

// TestPausesOutliveADaemon: what one daemon has learned of hosts, from a page or from robots.txt,
// keeps the slots of the next one from them until that time. An ordinary page does not.
func TestPausesOutliveADaemon(t *testing.T) {
	server := redistest.Start(t)
	var now atomic.Int64
	now.Store(1_900_000_000 * 1e6)
	first := openStore(t, now.Load, server.Addr())
	var p docindex.Puts
	for _, url := range []string{"http://a.test/1", "http://a.test/2", "http://b.test/1", "http://c.test/1"} {
		if err := p.Add(docindex.Put{URL: []byte(url)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	var b docindex.Batch
	if err := first.Candidates(t.Context(), 1, nil, &b); err != nil || b.Len() != 1 {
		t.Fatal(b.Len(), err)
	}
	var page, robots, usual docindex.Outcomes
	usual.Add(docindex.Outcome{URL: []byte("http://c.test/"), Pause: 2 * time.Second})
	page.Add(docindex.Outcome{DocID: b.At(0).DocID, URL: b.At(0).URL, Status: 503, Pause: time.Hour, Gap: time.Hour})
	robots.Add(docindex.Outcome{URL: []byte("http://b.test/"), Pause: time.Hour, Gap: time.Hour})
	if err := first.Outcomes(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	first.SetSlotGap(2 * time.Second)
	for _, o := range []*docindex.Outcomes{&robots, &usual} {
		if err := first.Pause(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first.Close()

	second := patientStore(Config{Addrs: []string{server.Addr()}, Lease: testLease}, now.Load)
	t.Cleanup(func() { second.Close() })
	left := map[string]time.Duration{}
	err := second.EachPause(t.Context(), func(host []byte, d time.Duration) { left[string(host)] = d })
	if err != nil || !maps.Equal(left, map[string]time.Duration{"a.test": time.Hour, "b.test": time.Hour}) {
		t.Errorf("the next daemon learns that it is to leave alone %v, %v", left, err)
	}
	for _, step := range []struct {
		pass time.Duration
		want int
	}{{time.Minute, 1}, {59*time.Minute - time.Millisecond, 0}, {time.Millisecond, 2}} {
		now.Add(step.pass.Microseconds())
		var b docindex.Batch
		if err := second.Candidates(t.Context(), 10, nil, &b); err != nil || b.Len() != step.want {
			t.Errorf("%v later the slots are given %d documents, %v; want %d", step.pass, b.Len(), err, step.want)
		}
	}
}
