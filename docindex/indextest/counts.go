package indextest

import (
	"testing"

	"urlserver/docindex"
)

// Count calls s.Count. An error fails the test.
func Count(t testing.TB, s docindex.Frontier, scope *docindex.Scope) docindex.Counts {
	t.Helper()
	n, err := s.Count(t.Context(), scope)
	if err != nil {
		t.Fatalf("Count: %v", err)
	}
	return n
}

// CrawlsOf calls s.Crawls. An error fails the test.
func CrawlsOf(t testing.TB, s docindex.Frontier) []string {
	t.Helper()
	all, err := s.Crawls(t.Context())
	if err != nil {
		t.Fatalf("Crawls: %v", err)
	}
	return all
}
