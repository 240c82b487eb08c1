// Package recrawl has documents of a store come back: their outcomes schedule them anew instead of completing them.
//
// Only outcomes are concerned, which are what line spiders and the doc index over HTTP report. Clients of the URL Frontier say
// themselves when a URL is to be fetched again.
package recrawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/docindex"
)

// Store is a store whose documents come back. Safe for concurrent use where the store within is.
type Store struct {
	docindex.Store
	rule Rule
}

// New returns a store that does by rule what outcomes ask for. All else goes to store as it is.
func New(store docindex.Store, rule Rule) *Store { return &Store{Store: store, rule: rule} }

// Outcomes is [docindex.Source.Outcomes]. What was told before is passed over: an outcome whose time is that of the last one
// of its document, or whose document waits for its time to come back. So one that is told twice neither doubles a
// wait twice nor completes anything.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	var out docindex.Outcomes
	round := round{store: s, now: time.Now(), again: map[string]bool{}}
	for i := range o.Len() {
		one := o.At(i)
		pass, err := round.decide(ctx, &one)
		if err != nil {
			return fmt.Errorf("doc_id %.100q: %w", one.DocID, err)
		}
		if pass {
			out.Add(one)
		}
	}
	return s.Store.Outcomes(ctx, &out)
}

// round is one call of Outcomes.
type round struct {
	store *Store
	now   time.Time
	again map[string]bool // by DOC_ID: comes back by an outcome of this call
}

// decide says whether an outcome is to be passed on, and adds to it when its document comes back.
func (r *round) decide(ctx context.Context, o *docindex.Outcome) (pass bool, err error) {
	if classOf(o) == final {
		return true, nil
	}
	d, err := r.store.Document(ctx, o.DocID)
	switch {
	case errors.Is(err, docindex.ErrUnknown):
		return true, nil // the store says what becomes of it, as below
	case err != nil:
		return false, err
	case d.State == docindex.Completed || !o.IsOf(d.URL):
		return true, nil
	}
	last, known := read(d.Metadata)
	if r.again[string(o.DocID)] || known && r.isOld(&d, last, o) {
		return false, nil
	}
	next, wait := r.store.rule.next(last, o)
	if wait > 0 {
		o.Again = due(r.now, wait)
		o.Metadata = next.with(&d)
		r.again[string(o.DocID)] = true
	}
	return true, nil
}

// isOld reports whether an outcome is of an earlier turn of a document.
func (r *round) isOld(d *docindex.Document, last schedule, o *docindex.Outcome) bool {
	if d.State == docindex.Scheduled && d.Due > r.now.Unix() {
		return true
	}
	return !o.At.IsZero() && last.ended == o.At.UnixMilli()
}

// due is the second in which a wait that begins now is over.
func due(now time.Time, wait time.Duration) int64 {
	t := now.Add(wait)
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
