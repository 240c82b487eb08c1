package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"urlserver/crawlcontrol"
	"urlserver/crawlcontrol/kafka"
	"urlserver/docindex"
	"urlserver/internal/scope"
)

// crawls is a store of which a test decides whether it works.
type crawls struct {
	mu       sync.Mutex
	away     bool
	full     bool // it takes no crawl requests
	asked    int  // calls while it was away
	urls     map[string]int
	stopped  map[string]int
	tried    chan struct{} // holds one once something failed
	pending  int           // what a survey tells
	domains  int           // how many it lists
	blocking chan struct{} // not nil: a stop waits for it
	begun    atomic.Int64  // stops
	told     map[string]int
}

func newCrawls() *crawls {
	return &crawls{urls: map[string]int{}, stopped: map[string]int{}, told: map[string]int{},
		tried: make(chan struct{}, 1)}
}

func (c *crawls) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func (c *crawls) setFull(full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.full = full
}

func (c *crawls) failLocked() error {
	if !c.away {
		return nil
	}
	c.asked++
	select {
	case c.tried <- struct{}{}:
	default:
	}
	return errors.New("the store is away")
}

func (c *crawls) Submit(_ context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failLocked(); err != nil {
		return docindex.PutResult{}, err
	}
	if c.full {
		select {
		case c.tried <- struct{}{}:
		default:
		}
		return docindex.PutResult{}, fmt.Errorf("the index is %w", docindex.ErrFull)
	}
	for i := range p.Len() {
		put, _ := p.At(i)
		c.urls[string(put.URL)]++
		p.SetVerdict(i, docindex.New)
	}
	return docindex.PutResult{New: p.Len()}, nil
}

func (c *crawls) Widen(context.Context, string, func(scope.Scope, bool) (scope.Scope, error)) error {
	return nil
}

func (c *crawls) Survey(_ context.Context, id docindex.CrawlID, _ int) (docindex.PendingReport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failLocked(); err != nil {
		return docindex.PendingReport{}, err
	}
	one := docindex.CrawlPending{Crawl: id.Crawl,
		Pending: docindex.Pending{Total: uint64(c.pending), Low: 1, High: 9}, Distinct: c.domains}
	for i := range c.domains {
		one.Domains = append(one.Domains, docindex.DomainPending{Domain: fmt.Sprintf("%0100d.example", i)})
	}
	return docindex.PendingReport{Total: one.Total, Crawls: []docindex.CrawlPending{one}}, nil
}

func (c *crawls) Stop(ctx context.Context, id docindex.CrawlID) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failLocked(); err != nil {
		return 0, err
	}
	c.stopped[id.Crawl]++
	c.begun.Add(1)
	if c.blocking != nil {
		select {
		case <-c.blocking:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return 5, nil
}

func (c *crawls) AcknowledgeStop(_ context.Context, id docindex.CrawlID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[id.Crawl]++
}

func (c *crawls) toldOf(crawl string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told[crawl]
}

func (c *crawls) seen(url string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.urls[url]
}

func info(uuid string) string {
	return fmt.Sprintf(`{"action":"info","appid":"testapp","uuid":%q,"spiderid":"link","crawlid":"c1"}`, uuid)
}

func stop(uuid, crawl string) string {
	return fmt.Sprintf(`{"action":"stop","appid":"testapp","uuid":%q,"spiderid":"link","crawlid":%q}`, uuid,
		crawl)
}

func crawl(url string) string {
	return fmt.Sprintf(`{"url":%q,"appid":"testapp","crawlid":"c1"}`, url)
}

func doer(c *crawls) kafka.Handler { return crawlcontrol.New(c, 1000) }
