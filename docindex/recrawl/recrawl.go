// Package recrawl schedules documents to be fetched again: their outcomes do not complete them.
//
// It acts on outcomes alone, which line spiders and daemons over HTTP report. URL Frontier clients
// say themselves when a URL is to be fetched again.
package recrawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urlserver/docindex"
)

// Store is a store whose documents are scheduled again. It is safe for concurrent use if the store
// within is.
type Store struct {
	docindex.Store
	rule Rule
	now  func() time.Time
}

// clocked is a store with a clock of its own, which decides what is due.
type clocked interface{ Now() time.Time }

// New returns a store that adds to outcomes, by rule, when the document comes back. It passes on
// everything else.
func New(store docindex.Store, rule Rule) *Store {
	s := &Store{Store: store, rule: rule, now: time.Now}
	if of, ok := store.(clocked); ok {
		s.now = of.Now
	}
	return s
}

// Outcomes is [docindex.Source.Outcomes]. It drops outcomes that were reported before: those with
// the time of the last outcome of their document, and those whose document waits to come back. So a
// repeated outcome neither doubles a wait twice nor completes the document.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	var out docindex.Outcomes
	round := round{store: s, now: s.now(), again: map[string]bool{}}
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
	again map[string]bool // by DOC_ID: an outcome of this call schedules it
}

// decide returns whether an outcome is passed on, and sets in it when the document comes back.
func (r *round) decide(ctx context.Context, o *docindex.Outcome) (pass bool, err error) {
	if classOf(o) == final {
		return true, nil
	}
	d, err := r.store.Document(ctx, o.DocID)
	switch {
	case errors.Is(err, docindex.ErrUnknown):
		return true, nil // the store decides, as below
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

// isOld reports whether an outcome is of an earlier fetch of a document.
func (r *round) isOld(d *docindex.Document, last schedule, o *docindex.Outcome) bool {
	if d.State == docindex.Scheduled && d.Due > r.now.Unix() {
		return true
	}
	return !o.At.IsZero() && last.ended == o.At.UnixMilli()
}

// due returns the second in which a wait that begins now is over.
func due(now time.Time, wait time.Duration) int64 {
	t := now.Add(wait)
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
