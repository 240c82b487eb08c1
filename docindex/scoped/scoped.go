// Package scoped keeps crawls in their scopes. Its store refuses a URL that is put for a crawl and
// is not in the crawl's scope. When a scope changes it ends the stored documents that are no longer
// in it.
//
// The store within keeps the scopes, as settings of crawls. This package applies them, in the same
// way for all stores.
package scoped

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"urlserver/docindex"
	"urlserver/internal/canonical"
	"urlserver/internal/scope"
)

// Store is a store whose crawls have scopes. New returns one. It is safe for concurrent use if the
// store within is.
type Store struct {
	docindex.Store
	names   *canonical.Rules     // make the texts by which URLs are known; nil: they are known by their own
	shared  bool                 // several daemons use the store
	pages   docindex.PageCounter // counts documents of crawls with a limited number of them
	sites   *beliefs             // how far the store believes the lastmods of hosts
	now     func() int64         // seconds since 1970
	turn    chan struct{}        // a semaphore of one: its holder reads or writes settings
	looking chan struct{}        // a semaphore of one: its holder reviews a crawl
	wake    chan struct{}        // holds one while Run may have something to review
	loaded  atomic.Int64         // when settings were read last, ms since 1970; 0: never
	some    atomic.Bool          // there are crawls with settings

	version uint64            // of the settings that were read last; whoever has turn uses it
	kept    map[string]string // texts of notes of crawls, by name; set before loaded, then used by Run

	mu        sync.RWMutex // guards all below; held for memory work only
	crawls    map[string]*crawl
	rules     map[string]*scope.Rules // by JSON of scopes: many crawls have equal ones
	timed     map[string]*crawl       // of crawls, those whose scope has an end
	reviews   map[string]struct{}     // crawls whose stored documents Review has to look at
	returning map[string]returning    // crawls that had documents in transit that are not in scope
	recalls   []func(*docindex.Outcomes)
	ends      map[string]struct{}    // DOC_IDs of out_of_scope outcomes during a review; nil: there is none
	ended     [2]map[string]struct{} // DOC_IDs of the documents that the review ended in its last batches
}

// sharedStore is a store of several daemons: the settings of crawls may change elsewhere, and
// OnStop has what crawl control needs.
type sharedStore interface {
	OnStop(cancel func(context.Context, *docindex.Outcomes) (ended int, err error))
}

// clocked is a store with a clock of its own, which its daemons share.
type clocked interface{ Now() time.Time }

const (
	reread   = time.Second // how often a shared store reads whether settings have changed
	maxRules = 10_000      // compiled scopes that the store remembers
)

// New returns a store over another one, which it uses for everything else. rules name the query
// parameters that do not count when two URLs are compared.
func New(store docindex.Store, rules ...canonical.Rule) *Store {
	_, shared := store.(sharedStore)
	pages, ok := store.(docindex.PageCounter)
	if !ok {
		pages = newPlaces()
	}
	s := &Store{
		Store: store, names: canonical.New(rules, docindex.MaxUnique),
		shared: shared, pages: pages, sites: newBeliefs(), now: func() int64 { return time.Now().Unix() },
		turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), looking: make(chan struct{}, 1),
		crawls: map[string]*crawl{}, rules: map[string]*scope.Rules{}, timed: map[string]*crawl{},
		reviews: map[string]struct{}{}, returning: map[string]returning{},
	}
	if of, ok := store.(clocked); ok {
		s.now = func() int64 { return of.Now().Unix() }
	}
	return s
}

// SetClock makes the store read the time, in seconds since 1970, from a simulation's clock.
func (s *Store) SetClock(now func() int64) { s.now = now }

// Now returns the time by which documents are due.
func (s *Store) Now() time.Time {
	if of, ok := s.Store.(clocked); ok {
		return of.Now()
	}
	return time.Now()
}

// OnStop registers cancel with a store of several daemons, for crawl control. Otherwise it does nothing.
func (s *Store) OnStop(cancel func(context.Context, *docindex.Outcomes) (ended int, err error)) {
	if of, ok := s.Store.(sharedStore); ok {
		of.OnStop(cancel)
	}
}

// OnRecall is [docindex.Hooks.OnRecall]. The store also calls recall with documents that the slots
// have and that are no longer in scope. They come back, and end when the store would hand them out
// again, or when Run looks at them.
func (s *Store) OnRecall(recall func(*docindex.Outcomes)) {
	s.mu.Lock()
	s.recalls = append(s.recalls, recall)
	s.mu.Unlock()
	s.Store.OnRecall(recall)
}

// Delete is [docindex.Frontier.Delete]. A deleted crawl has no settings, except one that was
// stopped: it stays stopped.
func (s *Store) Delete(ctx context.Context, of docindex.Scope) (int, error) {
	n, err := s.Store.Delete(ctx, of)
	if err != nil || s.ready(ctx) != nil {
		return n, err
	}
	if c := s.find(of.Crawl); c != nil && len(of.Key) == 0 && !c.Stopped {
		return n, s.change(ctx, idOf(of.Crawl), func(*Settings) (remove bool, err error) { return true, nil })
	}
	s.recount(of.Crawl)
	return n, nil
}

// Purge is [docindex.Frontier.Purge].
func (s *Store) Purge(ctx context.Context, of docindex.Scope, before time.Time) (int, error) {
	defer s.recount(of.Crawl)
	return s.Store.Purge(ctx, of, before)
}

// ready makes sure that the settings are known. Those of a shared store are read again once in a
// while; if that fails, those that are known count.
func (s *Store) ready(ctx context.Context) error {
	last, now := s.loaded.Load(), time.Now().UnixMilli()
	age := now - last // below 0 if the time of day was set back
	if last != 0 && (!s.shared || age >= 0 && age < reread.Milliseconds()) {
		return nil
	}
	select {
	case s.turn <- struct{}{}:
	default:
		if last != 0 {
			return nil // somebody else reads them
		}
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-s.turn }()
	if s.loaded.Load() != last {
		return nil
	}
	err := s.read(ctx)
	if err == nil && last == 0 {
		err = s.restore(ctx)
	}
	if err != nil && last == 0 {
		return err
	}
	s.loaded.Store(now)
	return nil
}

// read reads the settings if they have changed. The caller has turn.
func (s *Store) read(ctx context.Context) error {
	texts := map[string]string{}
	version, err := s.Store.CrawlSettings(ctx, s.version, func(crawl string, text []byte) {
		texts[crawl] = string(text)
	})
	if err != nil || version == s.version {
		return err
	}
	s.install(texts, s.version == 0)
	s.version = version
	for id := range texts {
		if c := s.find([]byte(id)); s.shared && c != nil {
			_ = s.forgetStale(ctx, id, c) // else the next put does
		}
	}
	return nil
}

// install puts the settings of all crawls into force. first says that none were known before.
func (s *Store) install(texts map[string]string, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.crawls {
		if _, there := texts[id]; !there {
			s.installLocked(id, "", false)
		}
	}
	for id, text := range texts {
		s.installLocked(id, text, !first)
	}
}

// installLocked puts the settings of a crawl into force; text "": the crawl has none. If review is
// true, Run looks again at the documents of a crawl whose settings have changed, and of a crawl
// whose review an earlier daemon did not finish.
func (s *Store) installLocked(id, text string, review bool) {
	old := s.crawls[id]
	if old != nil && old.text == text {
		return
	}
	delete(s.timed, id)
	if text == "" {
		delete(s.crawls, id)
		s.some.Store(len(s.crawls) > 0)
		return
	}
	c := s.newCrawlLocked(text)
	changed := review
	if old != nil {
		c.tally, review = old.tally, review && (c.rules != old.rules || c.Stopped != old.Stopped)
	}
	if changed && c.countsMore(old) {
		c.tally.stale.Store(true) // documents that were put meanwhile were not counted
	}
	s.crawls[id] = c
	s.some.Store(true)
	if c.rules != nil && !c.rules.Scope.Until.IsZero() {
		s.timed[id] = c
	}
	if c.Changed && review || c.Review {
		s.reviews[id] = struct{}{}
		s.hint()
	}
}

// hint makes Run look for reviews.
func (s *Store) hint() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// find returns the crawl with an ID, or nil if it has no settings. An empty ID is DEFAULT.
func (s *Store) find(crawl []byte) *crawl {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(crawl) == 0 {
		return s.crawls[docindex.DefaultCrawl]
	}
	return s.crawls[string(crawl)]
}

func idOf(crawl []byte) string {
	if len(crawl) == 0 {
		return docindex.DefaultCrawl
	}
	return string(crawl)
}

// queuesOf returns the scope, in the store's sense, of a crawl ID.
func queuesOf(id string) docindex.Scope {
	if id == docindex.DefaultCrawl {
		return docindex.Scope{}
	}
	return docindex.Scope{Crawl: []byte(id)}
}

// ErrStopped says why a crawl gets no other scope.
var ErrStopped = errors.New("the crawl was stopped, which is for good; begin another one")
