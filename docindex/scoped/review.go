package scoped

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
)

const (
	reviewStep  = time.Second // how often ends of crawls are looked for
	reviewBatch = 1000        // documents that are ended, recalled or scheduled together
)

// Run looks at the stored documents of crawls whose scope has changed, until ctx ends: it ends those
// that are scheduled and not in scope, recalls those that the slots have, and schedules those again
// that ended because an earlier scope refused them.
func (s *Store) Run(ctx context.Context, log zerolog.Logger) {
	tick := time.NewTicker(reviewStep)
	defer tick.Stop()
	for {
		_ = s.ready(ctx)
		s.noteEnds()
		for _, id := range s.toReview() {
			if err := s.review(ctx, id); err != nil && ctx.Err() == nil {
				log.Warn().Err(err).Str("crawl", id).Msg("documents of a crawl whose scope has changed were not " +
					"all looked at; trying on")
				s.mu.Lock()
				s.reviews[id] = struct{}{}
				s.mu.Unlock()
			}
		}
		select {
		case <-tick.C:
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// noteEnds notes crawls whose time is over.
func (s *Store) noteEnds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.timed, func(id string, c *crawl) bool {
		if !c.rules.Over(now) {
			return false
		}
		s.reviews[id] = struct{}{}
		return true
	})
}

func (s *Store) toReview() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Sorted(maps.Keys(s.reviews))
	clear(s.reviews)
	return list
}

// reviewing is a review of one crawl.
type reviewing struct {
	s       *Store
	c       *crawl
	ended   docindex.Outcomes
	recalls docindex.Outcomes
	again   docindex.Puts
	err     error
}

func (s *Store) review(ctx context.Context, id string) error {
	c := s.find([]byte(id))
	if c == nil {
		return nil
	}
	r := &reviewing{s: s, c: c}
	now := s.now()
	err := s.Store.List(ctx, queuesOf(id), func(d *docindex.Document) bool {
		r.look(d, now)
		if r.ended.Len()+r.recalls.Len()+r.again.Len() >= reviewBatch {
			r.err = r.flush(ctx)
		}
		return r.err == nil
	})
	if err = joined(r.err, err); err == nil {
		err = r.flush(ctx)
	}
	if err == nil && c.Review {
		err = s.change(ctx, id, func(was *Settings) (bool, error) {
			if s.find([]byte(id)) == c {
				was.Review = false
			}
			return false, nil
		})
	}
	if err != nil {
		return fmt.Errorf("crawl %.100q: %w", id, err)
	}
	return nil
}

// look decides what becomes of a stored document.
func (r *reviewing) look(d *docindex.Document, now int64) {
	host := docindex.HostOf(d.URL)
	kind, rule, ends := r.c.ends(d.URL, host, d.Depth, now)
	c := docindex.Candidate{DocID: d.DocID, URL: d.URL, Crawl: d.Crawl, Kind: kind}
	switch {
	case ends && d.State == docindex.Scheduled:
		r.c.tally.refused[rule].Add(1)
		r.ended.Add(outcomeOf(c))
	case ends && d.State == docindex.InTransit:
		r.recalls.Add(outcomeOf(c))
	case !ends && d.State == docindex.Completed && d.Last.Known && d.Last.Kind == docindex.OutOfScope:
		put := d.Put
		put.DocID, put.Update, put.Due = nil, true, docindex.Now
		r.again.AddChecked(put, host)
	}
}

// flush does what was decided.
func (r *reviewing) flush(ctx context.Context) error {
	if r.ended.Len() > 0 {
		if err := r.s.Store.Outcomes(ctx, &r.ended); err != nil {
			return err
		}
	}
	if r.again.Len() > 0 {
		if _, err := r.s.Store.Put(ctx, &r.again); err != nil {
			return err
		}
	}
	if r.recalls.Len() > 0 {
		r.s.mu.RLock()
		recalls := r.s.recalls
		r.s.mu.RUnlock()
		for _, recall := range recalls {
			recall(&r.recalls)
		}
	}
	r.ended.Reset()
	r.recalls.Reset()
	r.again.Reset()
	return nil
}
