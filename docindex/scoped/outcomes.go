package scoped

import (
	"context"

	"urlserver/docindex"
)

// complete reports outcomes to the store within. A document that ended as out_of_scope may be in scope again
// when its outcome arrives. It is scheduled again then: the review of the wider scope found it in the
// slots, and left it alone.
func (s *Store) complete(ctx context.Context, o *docindex.Outcomes) error {
	if !s.some.Load() || !hasOutOfScope(o) {
		return s.Store.Outcomes(ctx, o)
	}
	var ends, back docindex.Outcomes
	crawls := map[string]*crawl{} // that decided
	for i := range o.Len() {
		out := o.At(i)
		if out.Kind != docindex.OutOfScope {
			ends.Add(out)
			continue
		}
		id, depth := s.crawlAndDepth(ctx, &out)
		c := s.find(id)
		crawls[idOf(id)] = c
		if s.refuses(c, &out, depth) || faulty(faultLate) {
			ends.Add(out)
		} else {
			back.Add(out)
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
	s.reviewChanged(crawls)
	return nil
}

func hasOutOfScope(o *docindex.Outcomes) bool {
	for i := range o.Len() {
		if o.At(i).Kind == docindex.OutOfScope {
			return true
		}
	}
	return false
}

// crawlAndDepth returns the crawl and the depth of a document that has ended. An outcome need not tell
// its crawl.
func (s *Store) crawlAndDepth(ctx context.Context, out *docindex.Outcome) (crawl []byte, depth uint16) {
	doc, err := s.Store.Document(ctx, out.DocID)
	if err != nil {
		return out.Crawl, 0
	}
	return doc.Crawl, doc.Depth
}

// refuses reports whether the present scope refuses a document.
func (s *Store) refuses(c *crawl, out *docindex.Outcome, depth uint16) bool {
	if c == nil {
		return false
	}
	_, _, ends := c.ends(out.URL, docindex.HostOf(out.URL), depth, s.now())
	return ends
}

// reviewChanged lets Run review those of the crawls whose settings have changed since.
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
