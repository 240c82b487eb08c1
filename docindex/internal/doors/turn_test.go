package doors_test

import (
	"testing"

	"urlserver/docindex/internal/doors"
)

// TestCrawlGoneDuringACall has another crawl get the number of one that a call is for.
func TestCrawlGoneDuringACall(t *testing.T) {
	d := doors.New(func() {})
	d.SetDefaultDelay(0)
	old := d.Open([]byte("old"), []byte("a.test"), []byte("a.test"), 1000)
	c := d.Begin([]byte("old"), false, 1)
	d.Drop(old)
	d.Free(old, 1000)
	id := d.Open([]byte("new"), []byte("b.test"), []byte("b.test"), 1000)
	d.Count(id, doors.Scheduled)
	d.SetDue(id, 0, 1000)
	if got := d.Next(&c); got != 0 {
		t.Errorf("a call for a crawl that is gone is served a queue of %q", d.Crawl(got))
	}
	other := d.Begin(nil, true, 1)
	if d.Next(&other) != id {
		t.Fatal("the queue is not served")
	}
	if d.HeldAny(&c) {
		t.Error("a call for a crawl that is gone waits for a queue of another")
	}
}

// TestQueueGoneDuringACall has another queue get the number of one that a call asks for by its key.
func TestQueueGoneDuringACall(t *testing.T) {
	d := doors.New(func() {})
	d.SetDefaultDelay(0)
	old := d.Open(nil, []byte("a.test"), []byte("a.test"), 1000)
	v := d.Visit(doors.Wish{Key: []byte("a.test")})
	d.Drop(old)
	d.Free(old, 1000)
	id := d.Open(nil, []byte("b.test"), []byte("b.test"), 1000)
	d.Count(id, doors.Scheduled)
	d.SetDue(id, 0, 1000)
	if d.Go(&v) {
		t.Errorf("a call for a.test is served %s", d.Key(v.Queue))
	}
	other := d.Begin(nil, true, 1)
	if d.Next(&other) != id {
		t.Fatal("the queue is not served")
	}
	if d.Held(&v) {
		t.Error("a call for a.test waits for b.test")
	}
}
