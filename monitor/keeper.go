package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// Store is a store that keeps crawls.
type Store interface {
	docindex.Store
	docindex.Crawls
}

// Slots is what the daemon holds of crawls.
type Slots interface {
	// Condemn ends documents, and answers how many of those held will not be sent.
	Condemn(ctx context.Context, o *docindex.Outcomes) (ended int, err error)
	// Arrived answers how many ended when they came, condemned before and not told of so far. It waits for those on their way.
	Arrived(ctx context.Context) (ended int, err error)
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
	aways sync.Pool // of *docindex.Outcomes, for the memory that they have

	turn chan struct{} // holds one while a crawl is ended: one after the other, so that each document is counted once

	mu   sync.Mutex               // guards owed
	owed map[docindex.CrawlID]int // documents that ended in the slots, of crawls of whose end nobody was told
}

var _ Crawls = (*Keeper)(nil)

// NewKeeper returns a Keeper. What the store deletes the slots forget from now on.
func NewKeeper(store Store, slots Slots, log zerolog.Logger) *Keeper {
	store.OnDelete(slots.Forget)
	return &Keeper{store: store, slots: slots, log: log, turn: make(chan struct{}, 1), owed: map[docindex.CrawlID]int{}}
}

// Submit is [Crawls.Submit].
func (k *Keeper) Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	return k.store.Put(ctx, p)
}

// Survey is [Crawls.Survey].
func (k *Keeper) Survey(ctx context.Context, id docindex.CrawlID, domains int) (docindex.Survey, error) {
	away, ok := k.aways.Get().(*docindex.Outcomes)
	if !ok {
		away = &docindex.Outcomes{}
	}
	away.Reset()
	if err := k.slots.AtSpiders(ctx, away); err != nil {
		return docindex.Survey{}, err
	}
	defer k.aways.Put(away)
	return k.store.Survey(ctx, id, domains, away)
}

// Stop is [Crawls.Stop].
func (k *Keeper) Stop(ctx context.Context, id docindex.CrawlID) (purged uint64, err error) {
	if err := k.take(ctx); err != nil {
		return 0, err
	}
	defer k.leave()
	if purged, err = k.end(ctx, id, docindex.Stopped); err != nil {
		return 0, err
	}
	return purged, k.tell(ctx, id, 0)
}

// take waits for the turn.
func (k *Keeper) take(ctx context.Context) error {
	select {
	case k.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *Keeper) leave() { <-k.turn }

// end refuses a crawl and then purges it, in the store and in the slots. Whatever of it is handed out meanwhile, the
// store no longer does. purged counts what ended since somebody was told, by calls that failed, too.
func (k *Keeper) end(ctx context.Context, id docindex.CrawlID, why docindex.Kind) (purged uint64, err error) {
	if err := k.store.Refuse(ctx, id, why); err != nil {
		return 0, err
	}
	slots := 0
	inStore, err := k.store.PurgeCrawl(ctx, id, func(o *docindex.Outcomes) error {
		n, err := k.slots.Condemn(ctx, o)
		slots += n
		return err
	})
	arrived, late := k.slots.Arrived(ctx)
	err = errors.Join(err, late)
	slots = k.owe(id, slots+arrived)
	k.log.Info().Str("crawlid", id.Crawl).Str("appid", id.App).Str("spiderid", id.Spider).Stringer("why", why).
		Int("in_store", inStore).Int("in_slots", slots).AnErr("cause", err).Msg("crawl purged")
	return uint64(inStore + slots), err
}

// owe adds to what somebody is to be told, and returns all of it.
func (k *Keeper) owe(id docindex.CrawlID, ended int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ended > 0 {
		k.owed[id] += ended
	}
	return k.owed[id]
}

// tell says that somebody was told how a crawl ended, as the store has it.
func (k *Keeper) tell(ctx context.Context, id docindex.CrawlID, round uint64) error {
	err := k.store.Told(ctx, id, round)
	if err == nil && round == 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.owed, id)
	}
	return err
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

// endOverdue ends crawls that are overdue. Between two of them others may take the turn.
func (k *Keeper) endOverdue(ctx context.Context, now time.Time, notify func(Reply, func())) error {
	var last docindex.CrawlID
	for range watchMost {
		id, err := k.endNext(ctx, now, notify)
		if err != nil || id == (docindex.CrawlID{}) || id == last {
			return err
		}
		last = id
	}
	return nil
}

// endNext ends one, whose ID it returns; an empty one: there is none.
func (k *Keeper) endNext(ctx context.Context, now time.Time, notify func(Reply, func())) (id docindex.CrawlID, err error) {
	if err := k.take(ctx); err != nil {
		return id, err
	}
	defer k.leave()
	overdue, err := k.store.Overdue(ctx, now, 1)
	if err != nil {
		return id, fmt.Errorf("overdue crawls: %w", err)
	}
	if len(overdue) == 0 {
		return id, nil
	}
	c, why := overdue[0], docindex.Stopped // who asked for that is told by asking again
	if c.Expired {
		why = docindex.Expired
	}
	purged, err := k.end(ctx, c.CrawlID, why)
	if err != nil {
		return id, fmt.Errorf("%v %+v: %w", why, c.CrawlID, err)
	}
	if c.Expired {
		notify(ExpiredNotice(c.CrawlID, purged, now), func() { k.told(ctx, c.CrawlID, 0) })
	}
	return c.CrawlID, nil
}

func (k *Keeper) tellFinished(ctx context.Context, now time.Time, grace time.Duration, notify func(Reply, func())) error {
	done, err := k.store.Finished(ctx, now.Add(-grace), watchMost)
	if err != nil {
		return fmt.Errorf("finished crawls: %w", err)
	}
	for _, c := range done {
		notify(CompletedNotice(c.CrawlID, c.Done, now), func() { k.told(ctx, c.CrawlID, c.Round) })
	}
	return nil
}

func (k *Keeper) told(ctx context.Context, id docindex.CrawlID, round uint64) {
	if err := k.tell(context.WithoutCancel(ctx), id, round); err != nil {
		k.log.Warn().Err(err).Str("crawlid", id.Crawl).Msg("crawl control: a notice will be sent again after a restart")
	}
}
