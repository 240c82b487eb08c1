package scoped_test

import (
	"context"
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
)

// listed is a store that calls after when it has listed documents.
type listed struct {
	docindex.Store
	after func()
}

func (l *listed) List(ctx context.Context, of docindex.Scope, visit func(*docindex.Document) bool) error {
	err := l.Store.List(ctx, of, visit)
	l.after()
	return err
}

func outOfScope(t *testing.T, s *scoped.Store, crawl string) uint64 {
	t.Helper()
	i, err := s.Crawl(t.Context(), crawl)
	if err != nil {
		t.Fatal(err)
	}
	return i.OutOfScope()
}

// TestOutOfScopeCountsOnce hands out documents while a review is about to end them.
func TestOutOfScopeCountsOnce(t *testing.T) {
	l := &listed{Store: memory.New(), after: func() {}}
	s := scoped.New(l)
	var urls []string
	for i := range 12 {
		urls = append(urls, fmt.Sprintf("http://h%d.test/", i))
	}
	put(t, s, of("c", urls...)...)
	set(t, s, "c", `{"domains":["other.test"]}`)
	var ended []string
	l.after = func() { _, ended = take(t, s) }
	if _, err := s.Review(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := outOfScope(t, s, "c"); n != 12 || len(ended) != 12 {
		t.Errorf("out_of_scope is %d; want 12 of the %d that ended at the slots", n, len(ended))
	}
}

// TestOutOfScopeCountsReturned hands out documents that come back, and hands them out again.
func TestOutOfScopeCountsReturned(t *testing.T) {
	onStores(t, func(t *testing.T, s *scoped.Store) {
		put(t, s, of("c", "http://a.test/", "http://b.test/")...)
		set(t, s, "c", `{"domains":["other.test"]}`)
		var b docindex.Batch
		if err := s.Candidates(t.Context(), 10, nil, &b); err != nil || b.EndedLen() != 2 {
			t.Fatalf("%d documents end, %v; want 2", b.EndedLen(), err)
		}
		var back docindex.Outcomes
		for i := range b.EndedLen() {
			c := b.EndedAt(i)
			back.Add(docindex.Outcome{DocID: c.DocID, URL: c.URL})
		}
		if err := s.Return(t.Context(), &back); err != nil {
			t.Fatal(err)
		}
		if _, ended := take(t, s); len(ended) != 2 {
			t.Errorf("%d documents end; want 2", len(ended))
		}
		if n := outOfScope(t, s, "c"); n != 2 {
			t.Errorf("out_of_scope is %d; want 2", n)
		}
	})
}
