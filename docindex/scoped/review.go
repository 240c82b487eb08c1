package scoped

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

const (
	reviewStep  = time.Second // how often ends of crawls are looked for
	reviewBatch = 1000        // documents that are ended, recalled or scheduled together

	settleMost = 5 * time.Second // how long a change waits for the review of its crawl

	longestLook = 60 // seconds between two looks at documents of a crawl that were in transit
	looksShare  = 20 // the pause after a look at all documents of a crawl is this many times as long as the look

	maxAway = 2000 // documents in transit that Run looks up one by one; with more it looks at all of their crawl
)

// Run looks at the stored documents of crawls whose scope has changed, until ctx ends: it ends those
// that are scheduled and not in scope, recalls those that the slots have, and schedules those again
// that ended because an earlier scope refused them. It also ends a document that the slots, a
// client or another daemon give back, if its crawl is over or the scope has changed meanwhile. And
// it notes counts and rounds of crawls for the next process.
func (s *Store) Run(ctx context.Context, log zerolog.Logger) {
	tick := time.NewTicker(reviewStep)
	defer tick.Stop()
	keeping := time.NewTicker(keepStep)
	defer keeping.Stop()
	if s.ready(ctx) == nil {
		defer s.keepLast(ctx, log)
	}
	for {
		_ = s.ready(ctx)
		if id, err := s.Review(ctx); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Str("crawl", id).Msg("documents of a crawl whose scope has changed were not " +
				"all checked; trying again")
		}
		select {
		case <-tick.C:
		case <-keeping.C:
			if err := s.keep(ctx); err != nil && ctx.Err() == nil {
				log.Debug().Err(err).Msg("docindex: counts of crawls could not be stored; trying again")
			}
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// Review does one round of the work of Run. The error is that of the crawl with the returned ID,
// the last one that failed; the next Review looks at it again.
func (s *Store) Review(ctx context.Context) (failed string, err error) {
	s.noteEnds()
	failed, err = s.noteReturned(ctx)
	for _, id := range s.toReview() {
		if one := s.reviewNow(ctx, id); one != nil {
			failed, err = id, one
		}
	}
	return failed, err
}

// reviewNow looks at the stored documents of a crawl, unless somebody else has done that meanwhile.
func (s *Store) reviewNow(ctx context.Context, id string) error {
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	_, wanted := s.reviews[id]
	delete(s.reviews, id)
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	err := s.review(ctx, id)
	if err != nil {
		s.mu.Lock()
		s.reviews[id] = struct{}{}
		s.mu.Unlock()
	}
	return err
}

// settle applies a change of a crawl to the stored documents, before the caller learns that the
// change is made. It takes settleMost at most; Run does the rest.
func (s *Store) settle(ctx context.Context, id string) {
	s.mu.RLock()
	bound := len(s.recalls) > 0
	s.mu.RUnlock()
	if !bound {
		return // the daemon has not begun, and sends nothing
	}
	ctx, cancel := context.WithTimeout(ctx, settleMost)
	defer cancel()
	_ = s.reviewNow(ctx, id) // Run tries again, and logs
}

// noteEnds makes Review look at the documents of crawls whose time is over.
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

// returning says when noteReturned looks at the documents of a crawl that were in transit and are
// not to be fetched again.
type returning struct {
	at, pause int64    // seconds since 1970, seconds
	away      []string // their DOC_IDs; nil: noteReturned looks at all documents of the crawl
}

// over reports whether nothing of a crawl is to be fetched any more.
func (c *crawl) over(now int64) bool { return c.Stopped || c.rules != nil && c.rules.Over(now) }

// awaitReturn makes noteReturned look at a crawl again, or no longer if is is false. away are the
// DOC_IDs to look at. The store remembers them only if all crawls together then have maxAway at
// most; otherwise noteReturned looks at all documents of the crawl. took is how many seconds the
// last such look took; 0: there was none.
func (s *Store) awaitReturn(id string, is bool, away []string, took int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := max(1, min(2*s.returning[id].pause, longestLook), looksShare*took)
	delete(s.returning, id)
	if !is {
		return
	}
	room := maxAway
	for _, other := range s.returning {
		room -= len(other.away)
	}
	if len(away) > room {
		away = nil
	}
	s.returning[id] = returning{s.now() + pause, pause, away}
}

// noteReturned looks at crawls that had documents in transit that are not to be fetched again. Such
// a document is scheduled when its spider's connection or its lease ends, and then nobody may ask
// for it. So Review looks once more at a crawl that is over; the crawl has ended when it has no
// documents in transit. It also looks once more at a crawl that is not over, unless the store
// remembers the DOC_IDs of all these documents.
func (s *Store) noteReturned(ctx context.Context) (failed string, err error) {
	for _, id := range s.returned() {
		if one := s.lookReturned(ctx, id); one != nil {
			failed, err = id, fmt.Errorf("crawl %.100q: %w", id, one)
		}
	}
	return failed, err
}

// lookReturned is noteReturned for one crawl. No review of a crawl is under way meanwhile: one that
// finds documents in transit comes later, and makes noteReturned look again.
func (s *Store) lookReturned(ctx context.Context, id string) error {
	select {
	case s.looking <- struct{}{}:
		defer func() { <-s.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	of, c := queuesOf(id), s.find([]byte(id))
	if c != nil && !c.over(s.now()) {
		return s.lookAway(ctx, id, c)
	}
	n, err := s.Store.Count(ctx, &of)
	switch {
	case err == nil && n.Scheduled > 0:
		s.mu.Lock()
		s.reviews[id] = struct{}{}
		s.mu.Unlock()
		return nil
	case err == nil && n.InTransit == 0:
		err = s.reviewed(ctx, id, c)
	}
	s.awaitReturn(id, err != nil || n.InTransit > 0, nil, 0)
	return err
}

// lookAway is lookReturned for a crawl that is not over. It ends those of the documents that have
// come back and are not in scope.
func (s *Store) lookAway(ctx context.Context, id string, c *crawl) error {
	s.mu.Lock()
	away := s.returning[id].away
	if away == nil {
		s.reviews[id] = struct{}{}
	}
	s.mu.Unlock()
	if away == nil {
		return nil
	}
	r := &reviewing{s: s, c: c}
	s.setReviewing(true)
	defer s.setReviewing(false)
	err := r.lookAtAll(ctx, id, away)
	if err != nil {
		r.away = away
	}
	s.awaitReturn(id, len(r.away) > 0, r.away, 0)
	return err
}

// lookAtAll looks at documents of a crawl.
func (r *reviewing) lookAtAll(ctx context.Context, id string, docs []string) error {
	for _, doc := range docs {
		d, err := r.s.Store.Document(ctx, []byte(doc))
		if errors.Is(err, docindex.ErrUnknown) || err == nil && idOf(d.Crawl) != id {
			continue // it was deleted, and another document may have its DOC_ID
		}
		if err == nil {
			err = r.lookAt(ctx, &d, r.s.now())
		}
		if err != nil {
			return err
		}
	}
	return r.flush(ctx)
}

// returned returns the crawls that noteReturned is to look at now.
func (s *Store) returned() (ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	for id, r := range s.returning {
		if r.at <= now || r.at-now > longestLook { // the clock may have gone back
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *Store) toReview() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.reviews))
}

// reviewing is a review of one crawl.
type reviewing struct {
	s       *Store
	c       *crawl
	ended   docindex.Outcomes
	rules   []scope.Rule // of ended
	recalls docindex.Outcomes
	away    []string // DOC_IDs of recalled documents, the first maxAway and one more
	again   docindex.Puts
	err     error
}

func (s *Store) review(ctx context.Context, id string) error {
	c := s.find([]byte(id))
	if c == nil {
		s.awaitReturn(id, false, nil, 0)
		return nil
	}
	r := &reviewing{s: s, c: c}
	s.setReviewing(true)
	defer s.setReviewing(false)
	now := s.now()
	err := s.Store.List(ctx, queuesOf(id), func(d *docindex.Document) bool {
		r.err = r.lookAt(ctx, d, now)
		return r.err == nil
	})
	if err = joined(r.err, err); err == nil {
		err = r.flush(ctx)
	}
	if err == nil {
		left, over := len(r.away) > 0, c.over(now)
		if over {
			r.away = nil // noteReturned will look at all documents
		}
		s.awaitReturn(id, left, r.away, s.now()-now)
		if !left || !over {
			err = s.reviewed(ctx, id, c)
		}
	}
	if err != nil {
		return fmt.Errorf("crawl %.100q: %w", id, err)
	}
	return nil
}

// reviewed records in the settings of a crawl that its documents have been reviewed.
func (s *Store) reviewed(ctx context.Context, id string, c *crawl) error {
	if c == nil || !c.Review {
		return nil
	}
	return s.change(ctx, id, func(was *Settings) (bool, error) {
		now := s.find([]byte(id))
		if now == c {
			was.Review = false
		}
		return now == nil, nil // a deleted crawl stays so
	})
}

// setReviewing begins or ends the recording of the documents that end during a review.
func (s *Store) setReviewing(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends, s.ended = nil, [2]map[string]struct{}{}; is {
		s.ends, s.ended[0] = map[string]struct{}{}, map[string]struct{}{}
	}
}

// lookAt decides what becomes of a stored document. Once there are enough decisions for a batch, it flushes them.
func (r *reviewing) lookAt(ctx context.Context, d *docindex.Document, now int64) error {
	r.look(d, now)
	if r.ended.Len()+r.recalls.Len()+r.again.Len() < reviewBatch {
		return nil
	}
	return r.flush(ctx)
}

func (r *reviewing) look(d *docindex.Document, now int64) {
	host := docindex.HostOf(d.URL)
	kind, rule, ends := r.c.ends(d.URL, host, d.Depth, now)
	c := docindex.Candidate{DocID: d.DocID, URL: d.URL, Crawl: d.Crawl, Kind: kind}
	switch {
	case ends && d.State == docindex.Scheduled:
		r.ended.Add(outcomeOf(c))
		r.rules = append(r.rules, rule)
	case ends && d.State == docindex.InTransit:
		if len(r.away) <= maxAway {
			r.away = append(r.away, string(d.DocID))
		}
		if r.recalls.Add(outcomeOf(c)); faulty(FaultTwice) {
			r.ended.Add(outcomeOf(c))
			r.rules = append(r.rules, scope.InScope)
		}
	case faulty(FaultAgain):
	case !ends && d.State == docindex.Completed && d.Last.Known && d.Last.Kind == docindex.OutOfScope:
		put := d.Put
		put.DocID, put.Update, put.Due = nil, true, docindex.Now
		r.again.AddChecked(put, host)
	}
}

// flush carries out the decisions: it ends, schedules and recalls documents.
func (r *reviewing) flush(ctx context.Context) error {
	if r.ended.Len() > 0 {
		var refusals []refusal
		for i, rule := range r.rules {
			if rule != scope.InScope && r.s.counts(r.ended.At(i).DocID, true) {
				refusals = append(refusals, refusal{r.c, rule})
			}
		}
		if err := r.s.Store.Outcomes(ctx, &r.ended); err != nil {
			return err
		}
		countRefusals(refusals)
		r.s.batchEnded()
	}
	if r.again.Len() > 0 {
		if _, err := r.s.Store.Put(ctx, &r.again); err != nil {
			return err
		}
	}
	if r.recalls.Len() > 0 && !faulty(FaultRecall) {
		r.s.mu.RLock()
		recalls := r.s.recalls
		r.s.mu.RUnlock()
		for _, recall := range recalls {
			recall(&r.recalls)
		}
	}
	r.ended.Reset()
	r.rules = r.rules[:0]
	r.recalls.Reset()
	r.again.Reset()
	return nil
}
