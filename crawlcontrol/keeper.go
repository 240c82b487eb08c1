package crawlcontrol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// Store is what crawl control uses of the doc index.
type Store interface {
	docindex.Putter
	docindex.Crawls
}

// Slots is what the daemon holds of crawls.
type Slots interface {
	// Condemn ends documents, and answers how many of those held, or on their way, will not be sent.
	Condemn(ctx context.Context, o *docindex.Outcomes) (ended int, err error)
	// Forget ends documents without an outcome.
	Forget(o *docindex.Outcomes)
	// AtSpiders adds the documents that are at spiders.
	AtSpiders(ctx context.Context, o *docindex.Outcomes) error
}

// Keeper does requests on a store and the slots that take from it.
type Keeper struct {
	store Store
	slots Slots
	log   zerolog.Logger
	aways sync.Pool     // of *docindex.Outcomes, for the memory that they have
	done  atomic.Uint64 // see Changes

	mu     sync.Mutex               // guards ending
	ending map[docindex.CrawlID]int // how many are at ending a crawl now
}

var _ Crawls = (*Keeper)(nil)

// sharedStore is a Store of several daemons. It calls condemn with what the slots of this one have of crawls that others stop.
type sharedStore interface {
	OnStop(condemn func(context.Context, *docindex.Outcomes) (ended int, err error))
}

// NewKeeper returns a Keeper. What the store deletes the slots forget from now on.
func NewKeeper(store Store, slots Slots, log zerolog.Logger) *Keeper {
	store.OnDelete(slots.Forget)
	if s, ok := store.(sharedStore); ok {
		s.OnStop(slots.Condemn)
	}
	return &Keeper{store: store, slots: slots, log: log, ending: map[docindex.CrawlID]int{}}
}

// Submit is [Crawls.Submit].
func (k *Keeper) Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	defer k.done.Add(1)
	return k.store.Put(ctx, p)
}

// Changes counts the submits, stops and expiries so far. Whoever caches what the store says of crawls
// asks the store again when the number has changed.
func (k *Keeper) Changes() uint64 { return k.done.Load() }

// Survey is [Crawls.Survey].
func (k *Keeper) Survey(ctx context.Context, id docindex.CrawlID, domains int) (docindex.PendingReport, error) {
	away, ok := k.aways.Get().(*docindex.Outcomes)
	if !ok {
		away = &docindex.Outcomes{}
	}
	away.Reset()
	if err := k.slots.AtSpiders(ctx, away); err != nil {
		return docindex.PendingReport{}, err
	}
	defer k.aways.Put(away)
	return k.store.ReportPending(ctx, id, domains, away)
}

// Stop is [Crawls.Stop].
func (k *Keeper) Stop(ctx context.Context, id docindex.CrawlID) (purged uint64, err error) {
	return k.end(ctx, id, docindex.Stopped)
}

// Told is [Crawls.Told].
func (k *Keeper) Told(ctx context.Context, id docindex.CrawlID) { k.told(ctx, id, 0) }

// end refuses a crawl and then purges it, in the store and in the slots. Whatever of it is handed out meanwhile, the
// store no longer does. purged counts what ended since somebody was told, by calls that failed, too.
func (k *Keeper) end(ctx context.Context, id docindex.CrawlID, why docindex.Kind) (purged uint64, err error) {
	k.note(id, 1)
	defer k.note(id, -1)
	defer k.done.Add(1)
	if err := k.store.StopCrawl(ctx, id, why); err != nil {
		return 0, err
	}
	n, err := k.store.PurgeCrawl(ctx, id, func(o *docindex.Outcomes) (int, error) { return k.slots.Condemn(ctx, o) })
	k.log.Info().Str("crawlid", id.Crawl).Str("appid", id.App).Str("spiderid", id.Spider).Stringer("why", why).
		Int("purged", n).AnErr("cause", err).Msg("crawl purged")
	return uint64(n), err
}

// note counts who is at ending a crawl.
func (k *Keeper) note(id docindex.CrawlID, more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending[id] += more; k.ending[id] == 0 {
		delete(k.ending, id)
	}
}

func (k *Keeper) isEnding(id docindex.CrawlID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ending[id] > 0
}

const (
	watchStep = time.Second // expiry counts in whole seconds
	watchMost = 100         // crawls a step
)

// Watch expires crawls and tells of that, and of those of which nothing was left for a while, until ctx ends. It also goes
// on with purges that failed, or ended with the process before. notify must not wait; once somebody was told, told has to be
// called, from any goroutine, or else the same is told again after a restart.
func (k *Keeper) Watch(ctx context.Context, grace time.Duration, notify func(notice Reply, told func())) {
	tick := time.NewTicker(watchStep)
	defer tick.Stop()
	for {
		now := time.Now()
		err := errors.Join(k.endOverdue(ctx, now, notify), k.tellFinished(ctx, now, grace, notify))
		if err != nil && ctx.Err() == nil {
			k.log.Warn().Err(err).Msg("crawl control: expired and completed crawls cannot be told; trying on")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// endOverdue ends crawls that are overdue, but for those that somebody is at.
func (k *Keeper) endOverdue(ctx context.Context, now time.Time, notify func(Reply, func())) error {
	overdue, err := k.store.CrawlsToEnd(ctx, now, watchMost)
	if err != nil {
		return fmt.Errorf("overdue crawls: %w", err)
	}
	for _, c := range overdue {
		if k.isEnding(c.CrawlID) {
			continue
		}
		why := docindex.Stopped // who asked for that is told by asking again
		if c.Expired {
			why = docindex.Expired
		}
		purged, err := k.end(ctx, c.CrawlID, why)
		if err != nil {
			return fmt.Errorf("%v %+v: %w", why, c.CrawlID, err)
		}
		if c.Expired {
			notify(ExpiredNotice(c.CrawlID, purged, now), func() { k.told(ctx, c.CrawlID, 0) })
		}
	}
	return nil
}

func (k *Keeper) tellFinished(ctx context.Context, now time.Time, grace time.Duration, notify func(Reply, func())) error {
	done, err := k.store.FinishedCrawls(ctx, now.Add(-grace), watchMost)
	if err != nil {
		return fmt.Errorf("finished crawls: %w", err)
	}
	for _, c := range done {
		notify(CompletedNotice(c.CrawlID, c.Done, now), func() { k.told(ctx, c.CrawlID, c.Epoch) })
	}
	return nil
}

func (k *Keeper) told(ctx context.Context, id docindex.CrawlID, round uint64) {
	if err := k.store.AckCrawlEnd(context.WithoutCancel(ctx), id, round); err != nil {
		k.log.Warn().Err(err).Str("crawlid", id.Crawl).Msg("crawl control: what was told of a crawl's end may be told again")
	}
}
