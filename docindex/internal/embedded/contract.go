package embedded

import (
	"context"
	"math"
	"time"

	"urlserver/docindex"
	"urlserver/docindex/internal/queuesched"
)

// Contract has the methods of [docindex.Store] that need the Base alone.
type Contract struct{ b *Base }

// Contract returns the methods of a store on b.
func (b *Base) Contract() Contract { return Contract{b} }

// OnWake is [docindex.Hooks.OnWake].
func (c Contract) OnWake(wake func()) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.wakes = append(c.b.wakes, wake)
}

// OnRecall is [docindex.Hooks.OnRecall].
func (c Contract) OnRecall(recall func(*docindex.Outcomes)) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Recalls = append(c.b.Recalls, recall)
}

// SetSlotGap is [docindex.Hooks.SetSlotGap].
func (c Contract) SetSlotGap(gap time.Duration) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.SetSlotGap(gap.Milliseconds())
	c.b.RefreshLocked()
}

// SetHostRules is [docindex.Hooks.SetHostRules].
func (c Contract) SetHostRules(rules func(host []byte) docindex.HostRule) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.SetRules(rules)
	c.b.RefreshLocked()
}

// SetBudget is [docindex.Hooks.SetBudget].
func (c Contract) SetBudget(pages int) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.SetBudget(uint32(min(pages, math.MaxUint32)))
}

// Rounds is [docindex.Hooks.Rounds].
func (c Contract) Rounds() (all []docindex.Round) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.EachOverrun(func(o queuesched.Overrun) { all = append(all, docindex.Round(o)) })
	return all
}

// RestoreRounds is [docindex.Hooks.RestoreRounds].
func (c Contract) RestoreRounds(rounds []docindex.Round) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	for _, r := range rounds {
		c.b.Sched.RestoreOverrun(queuesched.Overrun(r), c.b.Now())
	}
}

// SetAhead is [docindex.Hooks.SetAhead].
func (c Contract) SetAhead(to docindex.Ahead) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.SetAhead(AheadOf(to))
	c.b.RefreshLocked()
}

// AheadOf converts the bounds of SetAhead for a scheduler.
func AheadOf(to docindex.Ahead) queuesched.Ahead {
	urls := func(docs int) uint32 { return uint32(max(0, min(docs, math.MaxUint32))) }
	return queuesched.Ahead{Queue: urls(to.Queue), Domain: urls(to.Domain), Waiting: urls(to.Waiting)}
}

// SetAddresses is [docindex.Hooks.SetAddresses].
func (c Contract) SetAddresses(of docindex.Addresses) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Sched.SetAddresses(of, c.b.Now())
	c.b.RefreshLocked()
}

// OnDelete is [docindex.Crawls.OnDelete].
func (c Contract) OnDelete(forget func(*docindex.Outcomes)) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.Forget = forget
}

// Stats is [docindex.Inspector.Stats].
func (c Contract) Stats() docindex.StoreStats {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	c.b.CatchUpAllLocked(c.b.Now())
	n := c.b.Sched.Total()
	outcomes, bytes := c.b.Body.TotalsLocked()
	return docindex.StoreStats{
		Scheduled: int(n.URLs[queuesched.Scheduled]),
		InTransit: int(n.URLs[queuesched.InTransit]),
		Completed: int(n.URLs[queuesched.Completed]),
		Hosts:     int(n.Queues),
		Outcomes:  outcomes,
		Bytes:     bytes,
	}
}

// Settings is [docindex.Inspector.Settings].
func (c Contract) Settings(ctx context.Context, visit func(*docindex.Setting) bool) error {
	return VisitSettings(ctx, func(look func(d *queuesched.Scheduler, active bool, now int64)) {
		c.b.Mu.Lock()
		defer c.b.Mu.Unlock()
		look(c.b.Sched, !c.b.Inactive, c.b.Now())
	}, visit)
}

// Active is [docindex.Frontier.Active].
func (c Contract) Active(context.Context) (bool, error) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	return !c.b.Inactive, nil
}

// Queues is [docindex.Frontier.Queues].
func (c Contract) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return VisitQueues(ctx, func(from uint32, add func(key []byte, idle bool)) (uint32, error) {
		c.b.Mu.Lock()
		defer c.b.Mu.Unlock()
		return c.b.Sched.SomeQueues(crawl, from, c.b.Now(), add), nil
	}, visit)
}

// Crawls is [docindex.Frontier.Crawls].
func (c Contract) Crawls(context.Context) ([]string, error) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	if err := c.b.Body.UsableLocked(); err != nil {
		return nil, err
	}
	return c.b.Sched.Crawls(), nil
}

// Count is [docindex.Frontier.Count].
func (c Contract) Count(_ context.Context, s *docindex.Scope) (docindex.Counts, error) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	if err := c.b.Body.UsableLocked(); err != nil {
		return docindex.Counts{}, err
	}
	now := c.b.Now()
	c.b.CatchUpAllLocked(now)
	n := CountsOf(c.b.Sched, s)
	switch {
	case s == nil:
		n.Later = c.b.Sched.Later(now)
	case len(s.Key) == 0:
		n.Later = c.b.Sched.CrawlLater(s.Crawl, now)
	}
	return n, nil
}

// FinishedCrawls is [docindex.Crawls.FinishedCrawls].
func (c Contract) FinishedCrawls(ctx context.Context, since time.Time, max int) ([]docindex.FinishedCrawl, error) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	if err := c.b.Body.UsableLocked(); err != nil {
		return nil, err
	}
	return c.b.Crawls.Finished(since, max), ctx.Err()
}

// CrawlCounts is [docindex.Crawls.CrawlCounts].
func (c Contract) CrawlCounts(_ context.Context, max int) ([]docindex.CrawlCounts, error) {
	c.b.Mu.Lock()
	defer c.b.Mu.Unlock()
	return c.b.Crawls.Counts(max), nil
}

// ListCrawls is [docindex.CrawlLister.ListCrawls].
func (c Contract) ListCrawls(
	ctx context.Context, text string, max int,
) (some []docindex.CrawlState, all int, err error) {
	return c.b.Crawls.List(ctx, text, max, func(look func()) {
		c.b.Mu.Lock()
		defer c.b.Mu.Unlock()
		look()
	})
}
