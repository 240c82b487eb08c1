package queuesched_test

import (
	"fmt"
	"testing"

	"urlserver/docindex/internal/queuesched"
)

// TestCrawlGoneDuringACall has another crawl get the number of one that a call is for.
func TestCrawlGoneDuringACall(t *testing.T) {
	d := queuesched.New(func() {})
	d.SetDefaultDelay(0)
	old := d.Open([]byte("old"), []byte("a.test"), []byte("a.test"), 1000)
	c := d.BeginCall([]byte("old"), false, 1)
	d.Drop(old)
	d.Free(old, 1000)
	id := d.Open([]byte("new"), []byte("b.test"), []byte("b.test"), 1000)
	d.Count(id, queuesched.Scheduled)
	d.SetDue(id, 0, 1000)
	if got := d.NextForCall(&c, 1000); got != 0 {
		t.Errorf("a call for a crawl that is gone is served a queue of %q", d.Crawl(got))
	}
	other := d.BeginCall(nil, true, 1)
	if d.NextForCall(&other, 1000) != id {
		t.Fatal("the queue is not served")
	}
	if d.MayRetryAny(&c) {
		t.Error("a call for a crawl that is gone waits for a queue of another")
	}
}

// TestFirstLooksAtSome has it find a queue behind more of another crawl than it looks at while its
// caller holds a lock.
func TestFirstLooksAtSome(t *testing.T) {
	const others = 25_000
	d := queuesched.New(func() {})
	for i := range others {
		key := fmt.Appendf(nil, "h%d.test", i)
		d.Open([]byte("other"), key, key, 1000)
	}
	want := d.Open([]byte("c"), []byte("a.test"), []byte("a.test"), 1000)
	looks, id := 0, uint32(0)
	for from := uint32(1); id == 0 && from != 0; looks++ {
		was := from
		if id, from = d.FirstQueue([]byte("c"), from); id == 0 && (from <= was || from > was+others/2) {
			t.Fatalf("from %d on it looks up to %d", was, from)
		}
	}
	if id != want || looks < 3 {
		t.Errorf("First finds %d with %d looks; want %d with some", id, looks, want)
	}
	if id, next := d.FirstQueue([]byte("c"), want+1); id != 0 || next != 0 {
		t.Errorf("First behind all is %d, %d; want 0, 0", id, next)
	}
}

// TestQueueGoneDuringACall has another queue get the number of one that a call asks for by its key.
func TestQueueGoneDuringACall(t *testing.T) {
	d := queuesched.New(func() {})
	d.SetDefaultDelay(0)
	old := d.Open(nil, []byte("a.test"), []byte("a.test"), 1000)
	v := d.Begin(queuesched.Query{Key: []byte("a.test")})
	d.Drop(old)
	d.Free(old, 1000)
	id := d.Open(nil, []byte("b.test"), []byte("b.test"), 1000)
	d.Count(id, queuesched.Scheduled)
	d.SetDue(id, 0, 1000)
	if d.Next(&v, 1000) {
		t.Errorf("a call for a.test is served %s", d.Key(v.Queue))
	}
	other := d.BeginCall(nil, true, 1)
	if d.NextForCall(&other, 1000) != id {
		t.Fatal("the queue is not served")
	}
	if d.MayRetry(&v) {
		t.Error("a call for a.test waits for b.test")
	}
}

// TestKeptForClientsOfItsCrawl: when the slots have had their turn at a host, it is kept for clients,
// if those ask for URLs of a crawl that has some there.
func TestKeptForClientsOfItsCrawl(t *testing.T) {
	for crawl, want := range map[string]bool{"its": false, "another": true} {
		d := queuesched.New(func() {})
		d.SetDefaultDelay(0)
		d.SetAhead(queuesched.Ahead{Queue: 1})
		id := d.Open([]byte("its"), []byte("a.test"), []byte("a.test"), 1000)
		d.Open([]byte("another"), []byte("b.test"), []byte("b.test"), 1000)
		for range 3 {
			d.Count(id, queuesched.Scheduled)
		}
		d.SetDue(id, 0, 1000)
		d.BeginRound(nil)
		d.EndRound(1000) // the slots ask
		d.BeginsToShare(queuesched.Query{Crawl: []byte(crawl)}, 1000)
		d.Move(id, queuesched.Scheduled, queuesched.InTransit)
		d.CountOut(id, nil, queuesched.SlotConsumer, 1, 1000)
		d.Move(id, queuesched.InTransit, queuesched.Completed)
		d.CountBack(id, nil, queuesched.SlotConsumer, 2000)
		if got := d.HostAvailable([]byte("a.test"), queuesched.SlotConsumer, 2001); got != want {
			t.Errorf("clients ask for crawl %q: the slots may have the host: %t; want %t", crawl, got, want)
		}
	}
}

// TestTurnOfADelayedQueue: when the slots have had their turn at a host, it is not kept for clients
// who may have nothing of it for long because of the delay of a queue. It is if the slots have to
// wait as long.
func TestTurnOfADelayedQueue(t *testing.T) {
	for hasOther, want := range map[bool]bool{false: false, true: true} {
		d := queuesched.New(func() {})
		d.SetDefaultDelay(0)
		d.SetAhead(queuesched.Ahead{Queue: 1})
		open := func(crawl string) uint32 {
			id := d.Open([]byte(crawl), []byte("a.test"), []byte("a.test"), 1000)
			d.Count(id, queuesched.Scheduled)
			d.Count(id, queuesched.Scheduled)
			d.SetDue(id, 0, 1000)
			return id
		}
		const delay = 60_000
		slow := open("slow")
		ofSlow := int64(delay)
		d.Set([]byte("slow"), []byte("a.test"), queuesched.Settings{Delay: &ofSlow}, 1000)
		last := slow
		if hasOther {
			last = open("other")
		}
		d.BeginRound(nil)
		d.EndRound(1000) // the slots ask
		d.BeginsToShare(queuesched.Query{Crawl: []byte("slow")}, 1000)
		for _, id := range []uint32{slow, last} {
			d.Move(id, queuesched.Scheduled, queuesched.InTransit)
			d.CountOut(id, nil, queuesched.SlotConsumer, 1, 1000)
			d.Move(id, queuesched.InTransit, queuesched.Completed)
			d.CountBack(id, nil, queuesched.SlotConsumer, 2000)
		}
		for _, at := range []int64{2001, 2001 + delay} {
			if got := d.HostAvailable([]byte("a.test"), queuesched.SlotConsumer, at); got != want {
				t.Errorf("%dms later, with another queue %t: the slots may have the host: %t; want %t",
					at-2000, hasOther, got, want)
			}
		}
	}
}
