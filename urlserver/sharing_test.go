package urlserver

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/internal/weburl"
	reservations "urlserver/reservation/memory"
)

// shares collects who asked which host when, or all hosts of one address together.
type shares struct {
	t     *testing.T
	all   bool          // of one address
	every time.Duration // a client asks so often; 0: each 50 ms
	mu    sync.Mutex    // guards all below
	last  map[string]time.Time
	by    map[string]int // requests by host and side
}

func (s *shares) asked(side, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := weburl.Parse([]byte(url))
	if err != nil {
		s.t.Error(err)
	}
	host := string(u.Host())
	if s.all {
		host = "address"
	}
	if since := time.Since(s.last[host]); since < time.Second {
		s.t.Errorf("%s is asked by %s %v after the last request", host, side, since)
	}
	s.last[host] = time.Now()
	s.by[host+" by "+side]++
}

// begin counts anew.
func (s *shares) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = map[string]int{}
}

// spiderOf fetches for a daemon until its connection ends.
func (s *shares) spiderOf(b *bubble) {
	sp := b.spider()
	go func() {
		for {
			var trans, id, ip, url string
			line, err := sp.in.ReadString('\n')
			if _, scan := fmt.Sscan(line, &trans, &id, &ip, &url); err != nil || scan != nil {
				return
			}
			s.asked("spider", url)
			time.AfterFunc(200*time.Millisecond, func() { // the daemon may have ended
				_, _ = fmt.Fprintf(sp.conn, "%s DONE 200\n", trans)
			})
		}
	}()
}

// clientOf gets so many URLs of each queue at a time, and reports each when it has fetched it.
func (s *shares) clientOf(b *bubble, side string, perQueue uint32, until time.Time) {
	for ; time.Now().Before(until); time.Sleep(cmp.Or(s.every, 50*time.Millisecond)) {
		var urls []string
		r := docindex.Request{AnyCrawl: true, PerQueue: perQueue, Lease: time.Hour}
		if err := b.store.Serve(b.t.Context(), r, func(h *docindex.Served) error {
			for i := range h.Len() {
				urls = append(urls, string(h.At(i).URL))
			}
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
		for _, url := range urls {
			go func() {
				s.asked(side, url)
				time.Sleep(300 * time.Millisecond)
				b.completed(url)
			}()
		}
	}
}

// TestSpidersAndClientsTakeTurns: a spider has held all hosts for some minutes when a URL
// Frontier client comes. From then on each has its share of each host, and together they keep its
// pace.
func TestSpidersAndClientsTakeTurns(t *testing.T) {
	const hosts, pages, sharing = 4, 1000, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		b := (&bubble{t: t, store: store}).start(func(c *configs.Config) {
			c.Frontier.Listen = "127.0.0.1:0" // nobody listens here; the daemon is told only
		}, Parts{Index: store, Store: store})
		var urls []string
		for i := range hosts * pages {
			urls = append(urls, fmt.Sprintf("http://10.0.0.%d/%d", 1+i%hosts, i))
		}
		put(t, store, urls...)
		s := &shares{t: t, last: map[string]time.Time{}, by: map[string]int{}}
		s.spiderOf(b)
		time.Sleep(3 * time.Minute)
		s.begin()
		s.clientOf(b, "client", 1, time.Now().Add(sharing))
		time.Sleep(time.Second)
		b.stopped()
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log(s.by)
		for i := range hosts {
			host := fmt.Sprintf("10.0.0.%d by ", 1+i)
			spider, client, most := s.by[host+"spider"], s.by[host+"client"], int(sharing.Seconds())
			if min(spider, client) < most/4 || spider+client < most*9/10 {
				t.Errorf("%sspider and client: %d and %d requests; want a fair share of about %d",
					host, spider, client, most)
			}
		}
	})
}

// TestSpidersAndClientsTakeTurnsAtAnAddress: the same with many hosts at one address, whose pace
// both sides keep together (frontier.addresses).
func TestSpidersAndClientsTakeTurnsAtAnAddress(t *testing.T) {
	const pages, sharing = 50, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		b := newAddress(t)
		var urls []string
		for i := range addressHosts * pages {
			urls = append(urls, fmt.Sprintf("http://h%d.test/%d", i%addressHosts, i))
		}
		put(t, b.store, urls...)
		s := &shares{t: t, all: true, last: map[string]time.Time{}, by: map[string]int{}}
		s.spiderOf(b)
		time.Sleep(3 * time.Minute)
		s.begin()
		s.clientOf(b, "client", 1, time.Now().Add(sharing))
		time.Sleep(time.Second)
		b.stopped()
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log(s.by)
		// With leases of four seconds they hand over the address every six seconds or so.
		spider, client, most := s.by["address by spider"], s.by["address by client"], int(sharing.Seconds())
		if min(spider, client) < most/4 || spider+client < most*9/10 {
			t.Errorf("spider and client: %d and %d requests; want a fair share of %d", spider, client, most)
		}
	})
}

// TestAnotherDaemonAtAnAddress: spiders and clients of one daemon want an address all the time, and
// so do the clients of another daemon. Each has its share, and together they keep its pace.
func TestAnotherDaemonAtAnAddress(t *testing.T) {
	const pages, sharing, lease = 200, time.Hour, 40 * time.Second
	synctest.Test(t, func(t *testing.T) {
		hosts, shared := hostsFile(t), reservations.New(reservations.Config{})
		b := startAddress(t, hosts, "me", shared, lease)
		other := startAddress(t, hosts, "other", shared, lease)
		time.Sleep(time.Minute) // all counts as just asked at the start
		s := &shares{t: t, all: true, every: time.Second / 4, last: map[string]time.Time{}, by: map[string]int{}}
		for n, d := range []*bubble{b, other} {
			var urls []string
			for i := range addressHosts * pages {
				urls = append(urls, fmt.Sprintf("http://h%d.test/%d.%d", i%addressHosts, n, i))
			}
			put(t, d.store, urls...)
		}
		until := time.Now().Add(sharing)
		s.spiderOf(b)
		var clients sync.WaitGroup
		clients.Go(func() { s.clientOf(b, "client", 1, until) })
		clients.Go(func() { s.clientOf(other, "other", 1, until) })
		clients.Wait()
		time.Sleep(time.Second)
		b.stopped()
		other.stopped()
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log(s.by)
		all, most := 0, int(sharing.Seconds())
		for _, side := range []string{"spider", "client", "other"} {
			n := s.by["address by "+side]
			if all += n; n < most/12 {
				t.Errorf("%s: %d of %d requests; want a twelfth at least", side, n, most)
			}
		}
		if all < most*8/10 {
			t.Errorf("%d of %d requests; want four fifths of the pace", all, most)
		}
	})
}
