package scoped

import (
	"context"
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
)

// watched is a store that calls before at each report of outcomes.
type watched struct {
	docindex.Store
	before func()
}

func (w *watched) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	w.before()
	return w.Store.Outcomes(ctx, o)
}

// TestReviewKeepsFewIDs ends many documents. The review does not keep the DOC_IDs of all.
func TestReviewKeepsFewIDs(t *testing.T) {
	w := &watched{Store: memory.New(), before: func() {}}
	s := New(w)
	var p docindex.Puts
	for i := range 5 * reviewBatch {
		if err := p.Add(docindex.Put{URL: fmt.Appendf(nil, "http://h%d.test/", i), Crawl: []byte("c")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	if err := s.change(t.Context(), "c", func(now *Settings) (bool, error) {
		now.Scope.Domains = []string{"other.test"}
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	most := 0
	w.before = func() { most = max(most, s.keptIDs()) }
	if _, err := s.Review(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, err := s.Crawl(t.Context(), "c")
	if err != nil || i.OutOfScope() != 5*reviewBatch {
		t.Errorf("out_of_scope is %d, %v; want %d", i.OutOfScope(), err, 5*reviewBatch)
	}
	if most > 2*reviewBatch || most < reviewBatch {
		t.Errorf("%d DOC_IDs are kept at once; want those of two batches", most)
	}
}

func (s *Store) keptIDs() int { return len(s.ends) + len(s.ended[0]) + len(s.ended[1]) }
