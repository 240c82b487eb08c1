package urlserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"urlserver/reservation"
	"urlserver/reservation/memory"
	"urlserver/urlserver/engine"
)

var (
	_ reservation.Counter = (*holdings)(nil)
	_ reservation.Counter = (*cutOff)(nil)
)

// holdings is a store that counts the documents held by daemons. It forgets all counts now and
// then.
type holdings struct {
	*fallible
	now   func() time.Duration
	held  map[string]map[string]reservation.Holding // by holder and host
	until map[string]time.Duration                  // by holder
	calls int
	dead  map[string]bool
}

func newHoldings() *holdings {
	return &holdings{held: map[string]map[string]reservation.Holding{}, until: map[string]time.Duration{},
		dead: map[string]bool{}}
}

func (l *holdings) ReportHoldings(ctx context.Context, holder string, first bool, ttl time.Duration,
	held []reservation.Holding) (bool, error) {
	if l.away {
		return false, errAway
	}
	l.expire()
	if l.calls++; l.calls%20 == 0 { // as if the holder had been silent
		l.dead[holder] = true
		delete(l.held, holder)
	}
	if l.dead[holder] || !first && l.held[holder] == nil {
		return false, nil
	}
	if ttl == 0 {
		l.dead[holder] = true
		delete(l.held, holder)
		return true, nil
	}
	if l.held[holder] == nil {
		l.held[holder] = map[string]reservation.Holding{}
	}
	l.until[holder] = l.now() + ttl
	for _, h := range held {
		l.held[holder][h.Host] = h
		if h.Documents > 0 {
			if _, err := l.AddHost(ctx, h.Host, time.Time{}); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

func (l *holdings) expire() {
	for holder, until := range l.until {
		if until <= l.now() {
			l.dead[holder] = true
			delete(l.held, holder)
		}
	}
}

func (l *holdings) total() (n int) {
	l.expire()
	for _, held := range l.held {
		for _, h := range held {
			n += h.Documents
		}
	}
	return n
}

// ofCrawl returns the number of held documents of a crawl.
func (l *holdings) ofCrawl(crawl string) (n int) {
	l.expire()
	for _, held := range l.held {
		for _, h := range held {
			for _, c := range h.Crawls {
				if c.Crawl == crawl {
					n += c.Documents
				}
			}
		}
	}
	return n
}

// TestHeldIsTold: three daemons fetch their documents while the store forgets the reported counts,
// and is away.
func TestHeldIsTold(t *testing.T) {
	const hosts, docs = 12, 120
	for seed := range uint64(3) {
		l := newHoldings()
		w := newWorldOf(t, seed, 3, l, nil)
		for n, nd := range w.nodes {
			ids, urls := docsOf(n*docs, docs, hosts)
			w.give(nd, ids, urls)
		}
		most, mostOdd := 0, 0
		for range 30 {
			w.run(10 * time.Second)
			w.store.away = w.rnd.IntN(8) == 0
			most, mostOdd = max(most, l.total()), max(mostOdd, l.ofCrawl("odd"))
		}
		w.store.away = false
		w.run(3 * time.Minute)
		for id := range 3 * docs {
			if w.sent[fmt.Sprint(id)] != 1 {
				t.Errorf("seed %d: document %d was sent %d times; want once", seed, id, w.sent[fmt.Sprint(id)])
			}
		}
		if n := l.ofCrawl("odd"); n != 0 || mostOdd < docs/3 || mostOdd > 3*docs/2 {
			t.Errorf("seed %d: %d documents of a crawl are held in the end, and %d at most; want 0, and "+
				"%d to %d", seed, n, mostOdd, docs/3, 3*docs/2)
		}
		if n := l.total(); n != 0 || most < docs || most > 3*docs {
			t.Errorf("seed %d: %d documents are held in the end, and %d at most; want 0, and %d to %d",
				seed, n, most, docs, 3*docs)
		}
	}
}

// cutOff is a store whose first answer never arrives.
type cutOff struct {
	*memory.Store
	holders []string // holders to be forgotten
	cut     bool
}

func (c *cutOff) ReportHoldings(ctx context.Context, holder string, first bool, ttl time.Duration,
	held []reservation.Holding) (bool, error) {
	if first && !c.cut {
		c.cut = true
		return false, context.Canceled
	}
	if ttl == 0 {
		c.holders = append(c.holders, holder)
	}
	return true, nil
}

// TestEndForgetsWhatWasCutOff: a daemon that ends during a report whose answer is missing removes
// its counts, and does not leave them to expire.
func TestEndForgetsWhatWasCutOff(t *testing.T) {
	store := &cutOff{Store: memory.New(memory.Config{})}
	r := &Reserver{Store: store, Lease: time.Minute, Holder: "me"}
	ctx, end := context.WithCancel(t.Context())
	end()
	r.reportHoldings(ctx, &engine.LeaseBatch{Reports: []engine.HeldCount{{Host: "a.test", Documents: 1}}})
	r.withdrawHoldings(t.Context())
	if len(store.holders) != 1 || !strings.HasPrefix(store.holders[0], "me#") {
		t.Errorf("forgotten are %q; want the name under which it was told", store.holders)
	}
}
