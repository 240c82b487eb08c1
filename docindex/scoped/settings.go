package scoped

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"urlserver/docindex"
	"urlserver/docindex/internal/crawlstats"
	"urlserver/internal/scope"
)

// Info is what is known of a crawl.
type Info struct {
	Settings
	docindex.Counts
	Dropped uint64                  // put after the ID was stopped; of all processes that keep notes
	Refused [scope.RuleCount]uint64 // by rule: not taken, or ended; of all processes that keep notes
}

// OutOfScope is how many documents of a crawl were not taken, or ended, because of its scope.
func (i *Info) OutOfScope() (n uint64) {
	for rule := 1; rule < scope.RuleCount; rule++ {
		n += i.Refused[rule]
	}
	return n
}

// Crawl returns what is known of a crawl ID. It returns [docindex.ErrUnknown] for one that has
// neither settings nor documents.
func (s *Store) Crawl(ctx context.Context, id string) (i Info, err error) {
	if err := s.ready(ctx); err != nil {
		return i, err
	}
	of := queuesOf(id)
	if i.Counts, err = s.Store.Count(ctx, &of); err != nil {
		return i, err
	}
	c := s.find([]byte(id))
	if c == nil {
		if i.Queues == 0 {
			return i, docindex.ErrUnknown
		}
		i.Settings, err = Settings{}.normal()
		return i, err
	}
	i.Settings = c.Settings
	i.Dropped = c.tally.dropped.Load()
	for rule := range i.Refused {
		i.Refused[rule] = c.tally.refused[rule].Load()
	}
	return i, nil
}

// Change is what is to change in the settings of a crawl ID.
type Change struct {
	Scope  *scope.Scope // nil: it stays as it is
	Weight float64      // from MinWeight to MaxWeight; 0: it stays as it is
}

// SetCrawl changes scope and weight of a crawl ID. An error of a bad scope is a *[scope.Fault], and
// changes nothing; ErrStopped: the crawl was stopped.
func (s *Store) SetCrawl(ctx context.Context, id string, to Change) error {
	err := s.change(ctx, id, func(now *Settings) (bool, error) {
		if to.Scope != nil {
			now.Scope = *to.Scope
		}
		if to.Weight != 0 {
			now.Weight = to.Weight
		}
		return false, nil
	})
	if err == nil {
		s.settle(ctx, id)
	}
	return err
}

// Widen sets the scope of a crawl ID to the result of add, which gets the present scope and whether
// the crawl has settings. It does nothing if the crawl was stopped, or if the scope stays the same.
func (s *Store) Widen(ctx context.Context, id string, add func(scope.Scope, bool) (scope.Scope, error)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var now Settings
	c := s.find([]byte(id))
	if c != nil {
		now = c.Settings
	}
	to, err := add(now.Scope, c != nil)
	if err != nil {
		return err
	}
	if to, err = to.Normal(); err != nil || c != nil && (c.Stopped || string(to.Text()) == string(now.Scope.Text())) {
		return err
	}
	return s.change(ctx, id, func(is *Settings) (bool, error) {
		is.Submitted = true
		is.Scope, err = add(is.Scope, s.find([]byte(id)) != nil)
		return false, err
	})
}

// TakeSettings takes the settings that another index kept of a crawl ID, as CrawlSettings returns
// them. A crawl that has settings keeps its own. Run looks at the stored documents of the crawl
// again, as after a change.
func (s *Store) TakeSettings(ctx context.Context, id string, text []byte) error {
	if err := s.ready(ctx); err != nil || s.find([]byte(id)) != nil {
		return err
	}
	return s.change(ctx, id, func(now *Settings) (remove bool, err error) {
		if s.find([]byte(id)) != nil {
			return false, nil
		}
		if err := json.Unmarshal(text, now); err != nil {
			return false, fmt.Errorf("settings of a crawl: %w", err)
		}
		now.Changed, now.Review = true, true
		return false, nil
	})
}

// StopCrawlID makes the store drop URLs that are put for a crawl ID from now on. Its documents end
// as stopped: those that are scheduled soon, the others when they would be sent.
func (s *Store) StopCrawlID(ctx context.Context, id string) error {
	err := s.change(ctx, id, func(now *Settings) (bool, error) {
		now.Stopped = true
		return false, nil
	})
	if err == nil {
		s.settle(ctx, id)
	}
	return err
}

// change changes the settings of a crawl ID. do changes the present settings, or returns that they
// are to be removed.
func (s *Store) change(ctx context.Context, id string, do func(*Settings) (remove bool, err error)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	old, to := s.find([]byte(id)), Settings{Weight: 1}
	if old != nil {
		to = old.Settings
	}
	remove, err := do(&to)
	if err != nil {
		return err
	}
	text := []byte(nil)
	if !remove {
		if text, err = s.textOf(ctx, id, old, to); err != nil {
			return err
		}
	}
	if err := s.Store.SetCrawlSettings(ctx, id, text); err != nil {
		return err
	}
	s.version++ // of this change; if there was another one meanwhile, the store has a later one
	s.mu.Lock()
	s.installLocked(id, string(text), true)
	c := s.crawls[id]
	s.mu.Unlock()
	if c == nil {
		return s.pages.ForgetPages(ctx, id)
	}
	return s.forgetStale(ctx, id, c)
}

// textOf returns the text of settings for the store within, after a change.
func (s *Store) textOf(ctx context.Context, id string, old *crawl, to Settings) ([]byte, error) {
	var err error
	if to, err = to.normal(); err != nil {
		return nil, err
	}
	was := scope.Scope{}
	if old != nil {
		was = old.Scope
	}
	if old != nil && old.Stopped && string(was.Text()) != string(to.Scope.Text()) {
		return nil, ErrStopped
	}
	before, err := was.Normal()
	if err != nil {
		return nil, err
	}
	now := to.Scope.Text()
	changed := string(before.Text()) != string(now)
	if changed && len(now) > scope.MaxText { // an import would not read it
		return nil, &scope.Fault{Member: "scope", Index: -1,
			Why: fmt.Sprintf("it has %d bytes as JSON; at most %d are taken", len(now), scope.MaxText)}
	}
	if changed || to.Stopped && (old == nil || !old.Stopped) {
		of := queuesOf(id)
		n, err := s.Store.Count(ctx, &of)
		if err != nil {
			return nil, err
		}
		if n.Queues > 0 || old != nil { // a put may be on its way
			to.Changed, to.Review = true, true
		}
	}
	return json.Marshal(to)
}

// maxCountedIDs is the largest number of crawls in a list for which ListCrawls counts the documents
// of their IDs.
const maxCountedIDs = 100

// ListCrawls is [docindex.CrawlLister.ListCrawls]. Crawls that have settings and belong to no
// application in the list come last, by name. Where one application alone has a crawl ID, the counts are
// those of the ID: documents that belong to no application count, too. A list that lacks crawls, or is
// long, has the counts of the applications.
func (s *Store) ListCrawls(
	ctx context.Context, text string, max int,
) (some []docindex.CrawlState, all int, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, 0, err
	}
	if some, all, err = s.Store.ListCrawls(ctx, text, max); err != nil {
		return some, all, err
	}
	if all <= len(some) && all <= maxCountedIDs {
		s.countIDs(ctx, some, text)
	}
	ids := slices.DeleteFunc(s.unsubmitted(text), func(id string) bool {
		return slices.ContainsFunc(some, func(c docindex.CrawlState) bool { return c.Crawl == id })
	})
	all += len(ids)
	for _, id := range ids {
		if len(some) >= max {
			if id != text || max == 0 {
				continue
			}
			some = some[:max-1] // whoever looks for an ID gets it
		}
		i, err := s.Crawl(ctx, id)
		if err != nil {
			return some, all, err
		}
		some = append(some, docindex.CrawlState{CrawlID: docindex.CrawlID{Crawl: id}, Scheduled: i.Scheduled,
			AtSlots: i.InTransit, Done: i.Completed, Dropped: i.Dropped, Stopped: i.Stopped, Why: docindex.Stopped})
	}
	return some, all, nil
}

// countIDs sets the counts of crawls to those of their IDs, except where several crawls have one ID,
// or may have it that are not in the list because text is in other names of theirs. Counts stay as they
// are where the store cannot count.
func (s *Store) countIDs(ctx context.Context, list []docindex.CrawlState, text string) {
	of := map[string]int{}
	for i := range list {
		of[list[i].Crawl]++
	}
	for i := range list {
		c := &list[i]
		if of[c.Crawl] > 1 || !strings.Contains(c.Crawl, text) {
			continue
		}
		queues := queuesOf(c.Crawl)
		n, err := s.Store.Count(ctx, &queues)
		if err != nil {
			break
		}
		c.Scheduled = n.Scheduled
		c.AtSlots = n.InTransit - min(c.AtClients, n.InTransit)
		c.Done = n.Completed - min(c.Purged, n.Completed)
		if of := s.find([]byte(c.Crawl)); of != nil {
			c.Dropped += of.tally.dropped.Load()
		}
	}
	copy(list, crawlstats.First(list, len(list), ""))
}

// unsubmitted returns the crawl IDs that contain text and whose settings are not of crawl control.
func (s *Store) unsubmitted(text string) (ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, c := range s.crawls {
		if !c.Submitted && strings.Contains(id, text) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
