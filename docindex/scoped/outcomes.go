package scoped

import (
	"context"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// complete reports outcomes to the store within. It counts the documents that end as out_of_scope, each
// once. A document that ended as out_of_scope may be in scope again when its outcome arrives. It is
// scheduled again then: the review of the wider scope found it in the slots, and left it alone.
func (s *Store) complete(ctx context.Context, o *docindex.Outcomes) error {
	if !s.some.Load() || !hasOutOfScope(o) {
		return s.Store.Outcomes(ctx, o)
	}
	var ends, back docindex.Outcomes
	var refusals []refusal
	crawls := map[string]*crawl{} // that decided
	for i := range o.Len() {
		out := o.At(i)
		if out.Kind != docindex.OutOfScope {
			ends.Add(out)
			continue
		}
		doc := s.documentOf(ctx, &out)
		c := s.find(doc.Crawl)
		crawls[idOf(doc.Crawl)] = c
		rule, refused := s.refuses(c, &out, doc.Depth)
		if !refused && !faulty(FaultLate) {
			back.Add(out)
			continue
		}
		if ends.Add(out); refused && doc.State != docindex.Completed && s.counts(out.DocID, false) {
			refusals = append(refusals, refusal{c, rule})
		}
	}
	if back.Len() > 0 {
		if err := s.Store.Return(ctx, &back); err != nil {
			return err // it does no harm to return a document twice
		}
	}
	if err := s.Store.Outcomes(ctx, &ends); err != nil {
		return err
	}
	countRefusals(refusals)
	s.reviewChanged(crawls)
	return nil
}

// refusal is a document that ended because of the scope of its crawl.
type refusal struct {
	c    *crawl
	rule scope.Rule
}

func countRefusals(all []refusal) {
	for _, r := range all {
		r.c.tally.refused[r.rule].Add(1)
	}
}

// counts reports whether a document that ends is to be counted. A document that is handed out while
// a review looks at it ends twice. The store remembers for two batches which documents the review
// has ended. After that, the store within says that such a document is completed.
func (s *Store) counts(id []byte, byReview bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		return true
	}
	_, already := s.ends[string(id)]
	for _, batch := range s.ended {
		_, is := batch[string(id)]
		already = already || is
	}
	if byReview {
		s.ended[0][string(id)] = struct{}{}
	} else {
		s.ends[string(id)] = struct{}{}
	}
	return !already
}

// batchEnded begins the next batch of a review, and forgets the documents that ended two batches
// before.
func (s *Store) batchEnded() {
	s.mu.Lock()
	s.ended = [2]map[string]struct{}{{}, s.ended[0]}
	s.mu.Unlock()
}

func hasOutOfScope(o *docindex.Outcomes) bool {
	for i := range o.Len() {
		if o.At(i).Kind == docindex.OutOfScope {
			return true
		}
	}
	return false
}

// documentOf returns the document of an outcome, as far as the store knows it. An outcome need not tell
// its crawl.
func (s *Store) documentOf(ctx context.Context, out *docindex.Outcome) docindex.Document {
	doc, err := s.Store.Document(ctx, out.DocID)
	if err != nil {
		doc = docindex.Document{}
		doc.Crawl = out.Crawl
	}
	return doc
}

// refuses returns the rule of the present scope that refuses a document.
func (s *Store) refuses(c *crawl, out *docindex.Outcome, depth uint16) (rule scope.Rule, is bool) {
	if c == nil {
		return scope.InScope, false
	}
	_, rule, is = c.ends(out.URL, docindex.HostOf(out.URL), depth, s.now())
	return rule, is
}

// reviewChanged makes Run review those of the crawls whose settings have changed since they were
// read.
func (s *Store) reviewChanged(crawls map[string]*crawl) {
	for id, was := range crawls {
		if s.find([]byte(id)) == was {
			continue
		}
		s.mu.Lock()
		s.reviews[id] = struct{}{}
		s.mu.Unlock()
		s.hint()
	}
}
