package scoped_test

import (
	"fmt"
	"testing"

	"urlserver/docindex"
	"urlserver/docindex/memory"
	"urlserver/docindex/scoped"
	"urlserver/internal/scope"
)

// BenchmarkPut puts new URLs: into the store alone, without a scope, and with one of ten patterns.
func BenchmarkPut(b *testing.B) {
	var ten []string
	for i := range 10 {
		ten = append(ten, fmt.Sprintf(`/calendar%d/\d{4}`, i))
	}
	bounded := scoped.New(memory.New())
	err := bounded.SetCrawl(b.Context(), "DEFAULT", scoped.Change{Scope: &scope.Scope{
		Domains: []string{"example.org"}, Deny: ten}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		store docindex.Store
	}{{"alone", memory.New()}, {"no scope", scoped.New(memory.New())}, {"ten patterns", bounded}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				var p docindex.Puts
				for range 1000 {
					n++
					url := fmt.Appendf(nil, "http://www%d.example.org/some/folder/of/the/site/page-%d.html", n%100, n)
					if err := p.Add(docindex.Put{URL: url}); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := c.store.Put(b.Context(), &p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/URL")
		})
	}
}
