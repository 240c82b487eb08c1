package crawlcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

// Store is what crawl control uses of the doc index.
type Store interface {
	docindex.Putter
	docindex.Crawls
}

// Slots is the daemon's part of crawls: the documents that it holds.
type Slots interface {
	// Cancel ends documents. ended is how many of those that the daemon held or was about to get
	// will not be sent.
	Cancel(ctx context.Context, o *docindex.Outcomes) (ended int, err error)
	// Forget ends documents without an outcome.
	Forget(o *docindex.Outcomes)
	// NotPending adds the documents that the store counts with the slots and that are not pending:
	// those at spiders, and those that Cancel ended and whose outcomes the store has not taken yet.
	NotPending(ctx context.Context, o *docindex.Outcomes) error
}

// Controller executes requests on a store and the slots that the store feeds.
type Controller struct {
	store Store
	slots Slots
	log   zerolog.Logger
	aways sync.Pool     // of *docindex.Outcomes, to reuse their memory
	done  atomic.Uint64 // see Changes

	mu     sync.Mutex               // guards ending
	ending map[docindex.CrawlID]int // calls of end in progress, by crawl
}

var _ Crawls = (*Controller)(nil)

// sharedStore is a Store of several daemons. It calls cancel with this daemon's documents of crawls
// that other daemons stop.
type sharedStore interface {
	OnStop(cancel func(context.Context, *docindex.Outcomes) (ended int, err error))
}

// NewController returns a Controller. From now on the slots forget documents that the store deletes.
func NewController(store Store, slots Slots, log zerolog.Logger) *Controller {
	store.OnDelete(slots.Forget)
	if s, ok := store.(sharedStore); ok {
		s.OnStop(slots.Cancel)
	}
	return &Controller{store: store, slots: slots, log: log, ending: map[docindex.CrawlID]int{}}
}

// Submit implements [Crawls.Submit].
func (k *Controller) Submit(ctx context.Context, p *docindex.Puts) (docindex.PutResult, error) {
	defer k.done.Add(1)
	return k.store.Put(ctx, p)
}

// Changes counts the submits, stops and expiries so far. A caller that caches the store's answers
// about crawls must ask the store again when the number has changed.
func (k *Controller) Changes() uint64 { return k.done.Load() }

// Survey implements [Crawls.Survey].
func (k *Controller) Survey(ctx context.Context, id docindex.CrawlID,
	domains int) (docindex.PendingReport, error) {
	away, ok := k.aways.Get().(*docindex.Outcomes)
	if !ok {
		away = &docindex.Outcomes{}
	}
	away.Reset()
	if err := k.slots.NotPending(ctx, away); err != nil {
		return docindex.PendingReport{}, err
	}
	defer k.aways.Put(away)
	return k.store.ReportPending(ctx, id, domains, away)
}

// Stop implements [Crawls.Stop].
func (k *Controller) Stop(ctx context.Context, id docindex.CrawlID) (purged uint64, err error) {
	return k.end(ctx, id, docindex.Stopped)
}

// AcknowledgeStop implements [Crawls.AcknowledgeStop].
func (k *Controller) AcknowledgeStop(ctx context.Context, id docindex.CrawlID) {
	k.acknowledge(ctx, id, 0)
}

// end stops a crawl and then purges it, in the store and in the slots. From the start of end the
// store serves nothing of the crawl. purged counts the documents that ended since the last
// acknowledgement, by failed calls, too.
func (k *Controller) end(ctx context.Context, id docindex.CrawlID,
	why docindex.Kind) (purged uint64, err error) {
	k.note(id, 1)
	defer k.note(id, -1)
	defer k.done.Add(1)
	if err := k.store.StopCrawl(ctx, id, why); err != nil {
		return 0, err
	}
	n, err := k.store.PurgeCrawl(ctx, id, func(o *docindex.Outcomes) (int, error) {
		return k.slots.Cancel(ctx, o)
	})
	if err == nil {
		k.log.Info().Str("crawlid", id.Crawl).Str("appid", id.App).Str("spiderid", id.Spider).
			Stringer("why", why).Int("purged", n).Msg("crawl purged")
	}
	return uint64(n), err
}

// note counts the calls of end that are in progress.
func (k *Controller) note(id docindex.CrawlID, more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending[id] += more; k.ending[id] == 0 {
		delete(k.ending, id)
	}
}

func (k *Controller) isEnding(id docindex.CrawlID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ending[id] > 0
}

const (
	watchStep = time.Second // expiry has a resolution of seconds
	watchMost = 100         // crawls of one step
	warnAgain = time.Minute // log one kind of error no more often
	warnKinds = 10          // kinds of errors that are logged in this time
)

// Run expires crawls, and sends notices of expired and completed crawls, until ctx ends. A crawl is
// completed when nothing of it was open for the time grace. Run also continues purges that failed
// or were cut short by a restart.
//
// notify must not wait. After a notice was delivered, the caller calls told, from any goroutine.
// Otherwise the notice comes again after a restart.
func (k *Controller) Run(ctx context.Context, grace time.Duration, notify func(notice Reply, told func())) {
	tick := time.NewTicker(watchStep)
	defer tick.Stop()
	warned := warnings{}
	for {
		now := time.Now()
		for _, err := range []error{k.endOverdue(ctx, now, notify), k.notifyFinished(ctx, now, grace, notify)} {
			if err != nil && ctx.Err() == nil && warned.isNew(err, now) {
				k.log.Warn().Err(err).Msg("crawl control: the store does not list ended crawls; trying again")
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// warnings has when each kind of error was logged in the last warnAgain.
type warnings map[string]time.Time

// isNew reports whether to log an error: the first of each kind in warnAgain, and of warnKinds
// kinds at most. The kind of an error is the text of its cause without digits, since the text
// around the cause may name a crawl, and errors of a connection name a port.
func (w warnings) isNew(err error, now time.Time) bool {
	maps.DeleteFunc(w, func(_ string, at time.Time) bool { return now.Sub(at) >= warnAgain })
	kind := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, cmp.Or(errors.Unwrap(err), err).Error())
	if _, logged := w[kind]; logged || len(w) >= warnKinds {
		return false
	}
	w[kind] = now
	return true
}

// endOverdue ends crawls that are overdue, except those that another call is ending.
func (k *Controller) endOverdue(ctx context.Context, now time.Time, notify func(Reply, func())) error {
	overdue, err := k.store.CrawlsToEnd(ctx, now, watchMost)
	if err != nil {
		return fmt.Errorf("overdue crawls: %w", err)
	}
	for _, c := range overdue {
		if k.isEnding(c.CrawlID) {
			continue
		}
		why := docindex.Stopped // a client that asked for the stop gets the count when it asks again
		if c.Expired {
			why = docindex.Expired
		}
		purged, err := k.end(ctx, c.CrawlID, why)
		if err != nil {
			return fmt.Errorf("%v %+v: %w", why, c.CrawlID, err)
		}
		if c.Expired {
			notify(ExpiredNotice(c.CrawlID, purged, now), func() { k.acknowledge(ctx, c.CrawlID, 0) })
		}
	}
	return nil
}

func (k *Controller) notifyFinished(ctx context.Context, now time.Time, grace time.Duration,
	notify func(Reply, func())) error {
	done, err := k.store.FinishedCrawls(ctx, now.Add(-grace), watchMost)
	if err != nil {
		return fmt.Errorf("finished crawls: %w", err)
	}
	for _, c := range done {
		notify(CompletedNotice(c.CrawlID, c.Done, now), func() { k.acknowledge(ctx, c.CrawlID, c.Epoch) })
	}
	return nil
}

func (k *Controller) acknowledge(ctx context.Context, id docindex.CrawlID, round uint64) {
	if err := k.store.AckCrawlEnd(context.WithoutCancel(ctx), id, round); err != nil {
		k.log.Warn().Err(err).Str("crawlid",
			id.Crawl).Msg("crawl control: the reply or notice of a crawl's end may be sent again")
	}
}
