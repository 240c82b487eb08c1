package queuesched

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLaterAgainstAList compares the counts of URLs that are due later with those of a list, which
// is what the counts are about. Far moments count by the minute.
func TestLaterAgainstAList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := New(func() {})
		now := int64(1_700_000_000_000)
		crawls := []string{"a", "b"}
		var queues []uint32
		for _, c := range crawls {
			queues = append(queues, d.Open([]byte(c), []byte("a.example"), []byte("a.example"), now),
				d.Open([]byte(c), []byte("b.example"), []byte("b.example"), now))
		}
		type url struct {
			queue int
			due   int64
		}
		var urls []url
		for range 2000 {
			now += rng.Int64N(500)
			switch {
			case rng.IntN(3) > 0:
				u := url{rng.IntN(len(queues)), (now/1000 + rng.Int64N(300) - 50) * 1000}
				if rng.IntN(10) == 0 {
					u.due += 2 * aDay
				}
				urls = append(urls, u)
				d.Count(queues[u.queue], Scheduled)
				d.CountLater(queues[u.queue], u.due, now, 1)
			case len(urls) > 0:
				i := rng.IntN(len(urls))
				u := urls[i]
				d.CountLater(queues[u.queue], u.due, now, -1)
				d.Uncount(queues[u.queue], Scheduled)
				urls = slices.Delete(urls, i, i+1)
			}
			want := map[int]uint64{}
			for _, u := range urls {
				if u.due > now {
					want[u.queue/2]++
					want[-1]++
				}
			}
			if got := d.Later(now); got != want[-1] {
				t.Fatalf("seed %d: %d URLs are due later; want %d", seed, got, want[-1])
			}
			for i, c := range crawls {
				if got := d.CrawlLater([]byte(c), now); got != want[i] {
					t.Fatalf("seed %d: %d URLs of %s are due later; want %d", seed, got, c, want[i])
				}
			}
		}
		d.Drop(queues[0])
		d.Drop(queues[1])
		want := uint64(0)
		for _, u := range urls {
			if u.due > now && u.queue > 1 {
				want++
			}
		}
		if got := d.Later(now); got != want || d.CrawlLater([]byte("a"), now) != 0 {
			t.Fatalf("seed %d: %d URLs are due later when a crawl was deleted; want %d", seed, got, want)
		}
		if n := len(d.later.bySecond); n != d.later.order.Len() || n > len(urls) {
			t.Fatalf("seed %d: %d moments for %d URLs", seed, n, len(urls))
		}
	}
}

// TestLaterOfRestoredQueues: what a queue had when it was restored counts as due later while its
// first URL is.
func TestLaterOfRestoredQueues(t *testing.T) {
	d := New(func() {})
	now := int64(1_700_000_000_000)
	id := d.Restore([]byte("c"), []byte("a.example"), Persisted{Scheduled: 3, Delay: -1}, now)
	want := func(n uint64) {
		t.Helper()
		if got := d.Later(now); got != n || d.CrawlLater([]byte("c"), now) != n {
			t.Errorf("%d URLs, %d of the crawl, are due later; want %d", got, d.CrawlLater([]byte("c"), now), n)
		}
	}
	want(0)
	d.SetDue(id, now+5000, now)
	want(3)
	now += 5000
	want(0)
	d.Move(id, Scheduled, InTransit)
	d.SetDue(id, now+9000, now)
	want(2)
	d.Count(id, Scheduled)
	d.CountLater(id, now+2000, now, 1)
	want(3)
	d.SetDue(id, Never, now)
	want(1)
}
